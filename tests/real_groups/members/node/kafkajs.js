// Members of kafkajs.
import kafkajs from 'kafkajs'

import { serve } from './serve.js'

serve(async (topics, settings) => {
  const kafka = new kafkajs.Kafka({
    brokers: settings['bootstrap.servers'].split(','),
    clientId: 'kafkajs',
    logLevel: kafkajs.logLevel.NOTHING
  })
  // Its only strategy is its default, `RoundRobinAssigner`.
  const consumer = kafka.consumer({
    groupId: settings['group.id'],
    sessionTimeout: Number(settings['session.timeout.ms']),
    rebalanceTimeout: Number(settings['max.poll.interval.ms']),
    heartbeatInterval: Number(settings['heartbeat.interval.ms']),
    metadataMaxAge: Number(settings['metadata.max.age.ms']),
    rackId: settings['client.rack'] ?? '',
    allowAutoTopicCreation: false,
    maxWaitTimeInMs: 200
  })
  await consumer.connect()
  const run = async wanted => {
    await consumer.subscribe({ topics: wanted })
    await consumer.run({
      autoCommitInterval: Number(settings['auto.commit.interval.ms']),
      eachMessage: async () => {}
    })
  }
  await run(topics)
  return {
    // A running consumer cannot change its topics, and a stopped one keeps the earlier.
    subscribe: async wanted => {
      await consumer.stop()
      await run(wanted)
    },
    close: () => consumer.disconnect()
  }
})
