//! Members of krafka, on command, as tests/real_groups/member_program.py describes.

use std::collections::HashMap;
use std::time::Duration;

use krafka::Kafka;
use krafka::consumer::{AutoOffsetReset, PartitionAssignmentStrategy};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::sync::mpsc;

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Settings = HashMap<String, String>;

const POLL: Duration = Duration::from_millis(200);

enum Command {
    Subscribe(Vec<String>),
    Stop,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut members: HashMap<String, mpsc::UnboundedSender<Command>> = HashMap::new();
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let fields: Vec<&str> = line.split('\t').collect();
        let name = fields[1].to_string();
        match fields[0] {
            "start" => {
                let topics = listed(fields[2]);
                let settings: Settings =
                    fields[3..].chunks(2).map(|pair| (pair[0].to_string(), pair[1].to_string())).collect();
                let (tell, commands) = mpsc::unbounded_channel();
                members.insert(name.clone(), tell);
                tokio::spawn(async move {
                    if let Err(failure) = member(topics, settings, commands).await {
                        let text = failure.to_string();
                        println!("failed\t{name}\t{}", text.split_whitespace().collect::<Vec<_>>().join(" "));
                    }
                    println!("closed\t{name}");
                });
            }
            word => {
                let command = if word == "stop" { Command::Stop } else { Command::Subscribe(listed(fields[2])) };
                if let Some(tell) = members.get(&name) {
                    tell.send(command).ok();
                }
            }
        }
    }
    // The end of the input ends the program and every member with it, as in a crash.
    std::process::exit(0)
}

fn listed(topics: &str) -> Vec<String> {
    topics.split(',').map(String::from).collect()
}

async fn member(
    topics: Vec<String>,
    settings: Settings,
    mut commands: mpsc::UnboundedReceiver<Command>,
) -> Result<(), Failure> {
    let millis = |name: &str| settings[name].parse().map(Duration::from_millis);
    let kafka = Kafka::builder(settings["bootstrap.servers"].clone())
        .client_id("krafka")
        .metadata_max_age(millis("metadata.max.age.ms")?)
        .connect()
        .await?;
    let mut builder = kafka
        .consumer(settings["group.id"].clone())
        .auto_offset_reset(AutoOffsetReset::Latest)
        .session_timeout(millis("session.timeout.ms")?)
        .max_poll_interval(millis("max.poll.interval.ms")?)
        .heartbeat_interval(millis("heartbeat.interval.ms")?)
        .auto_commit_interval(millis("auto.commit.interval.ms")?);
    // Without a strategy, its default.
    if let Some(strategy) = settings.get("partition.assignment.strategy") {
        builder = builder.partition_assignment_strategy(match strategy.as_str() {
            "range" => PartitionAssignmentStrategy::Range,
            "roundrobin" => PartitionAssignmentStrategy::RoundRobin,
            _ => PartitionAssignmentStrategy::CooperativeSticky,
        });
    }
    if let Some(instance) = settings.get("group.instance.id") {
        builder = builder.group_instance_id(instance.clone());
    }
    if let Some(rack) = settings.get("client.rack") {
        builder = builder.client_rack(rack.clone());
    }
    let consumer = builder.build().await?;
    consumer.subscribe(&topics).await?;
    loop {
        match commands.try_recv() {
            Ok(Command::Subscribe(topics)) => consumer.subscribe(&topics).await?,
            Ok(Command::Stop) => break,
            Err(_) => {
                // As its users do: an error of one poll is tried again.
                if consumer.poll(POLL).await.is_err() {
                    tokio::time::sleep(POLL).await;
                }
            }
        }
    }
    Ok(consumer.close().await?)
}
