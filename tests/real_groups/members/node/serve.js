// Runs members of consumer groups on command, as tests/real_groups/member_program.py describes.
import { createInterface } from 'node:readline'

function say(...fields) {
  process.stdout.write(fields.join('\t') + '\n')
}

/**
 * Read commands until the input ends; then every member ends with the process, as in a crash.
 *
 * `join(topics, settings)` resolves to `{ subscribe, close }` of a member that consumes and commits.
 */
export function serve(join) {
  const members = new Map()
  // A member's commands are carried out one after the other.
  const after = (name, step) =>
    members.set(
      name,
      (members.get(name) ?? Promise.resolve()).then(step).catch(error => {
        say('failed', name, String(error?.stack ?? error).replace(/\s+/g, ' '))
        say('closed', name)
      })
    )
  const lines = createInterface({ input: process.stdin })
  lines.on('line', line => {
    const [word, name, topics, ...fields] = line.split('\t')
    if (word === 'start') {
      const settings = {}
      for (let i = 0; i < fields.length; i += 2) settings[fields[i]] = fields[i + 1]
      after(name, () => join(topics.split(','), settings))
    } else if (word === 'subscribe') {
      after(name, async member => {
        await member.subscribe(topics.split(','))
        return member
      })
    } else if (word === 'stop') {
      after(name, member => member?.close()).get(name).then(() => say('closed', name))
    }
  })
  lines.on('close', () => process.exit(0))
  process.on('unhandledRejection', error => say('failed', 'process', String(error).replace(/\s+/g, ' ')))
}
