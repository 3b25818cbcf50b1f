// Members of @platformatic/kafka.
import { Consumer, cooperativeStickyAssigner, roundRobinAssigner } from '@platformatic/kafka'

import { serve } from './serve.js'

const ASSIGNERS = { roundrobin: roundRobinAssigner, 'cooperative-sticky': cooperativeStickyAssigner }

serve(async (topics, settings) => {
  const strategy = settings['partition.assignment.strategy']
  const consumer = new Consumer({
    bootstrapBrokers: settings['bootstrap.servers'].split(','),
    clientId: 'platformatic',
    groupId: settings['group.id'],
    ...(settings['group.instance.id'] && { groupInstanceId: settings['group.instance.id'] }),
    // Without a strategy, its default.
    ...(strategy && { protocols: [{ name: strategy, version: 1 }], partitionAssigner: ASSIGNERS[strategy] }),
    sessionTimeout: Number(settings['session.timeout.ms']),
    rebalanceTimeout: Number(settings['max.poll.interval.ms']),
    heartbeatInterval: Number(settings['heartbeat.interval.ms']),
    metadataMaxAge: Number(settings['metadata.max.age.ms']),
    autocommit: Number(settings['auto.commit.interval.ms']),
    maxWaitTime: 200
  })
  const consume = async wanted => {
    const stream = await consumer.consume({ topics: wanted, mode: 'committed', fallbackMode: 'latest' })
    stream.on('data', () => {})
    stream.on('error', () => {})
    return stream
  }
  let stream = await consume(topics)
  return {
    subscribe: async wanted => {
      await stream.close()
      stream = await consume(wanted)
    },
    close: async () => {
      await stream.close()
      await consumer.close()
    }
  }
})
