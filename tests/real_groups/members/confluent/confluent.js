// Members of @confluentinc/kafka-javascript, which runs librdkafka.
import confluent from '@confluentinc/kafka-javascript'

import { serve } from './serve.js'

const { Kafka, logLevel } = confluent.KafkaJS

serve(async (topics, settings) => {
  // librdkafka takes Kafka's own names, but for one.
  const { 'metadata.max.age.ms': age, ...own } = settings
  const consumer = new Kafka({ kafkaJS: { logLevel: logLevel.NOTHING } }).consumer({
    ...own,
    'topic.metadata.refresh.interval.ms': Number(age)
  })
  await consumer.connect()
  await consumer.subscribe({ topics })
  await consumer.run({ eachMessage: async () => {} })
  return { subscribe: wanted => consumer.subscribe({ topics: wanted }), close: () => consumer.disconnect() }
})
