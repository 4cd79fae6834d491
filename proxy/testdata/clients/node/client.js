// A gRPC client that knows nothing of Abate: Node's grpc-js. It makes calls of all kinds and prints what came back.
// conformance_client.py is the same in Python.
'use strict'
const grpc = require('@grpc/grpc-js')
const same = (b) => b
const address = process.argv[2]

const streams = 60

function collect (call) {
  return new Promise((resolve) => {
    const got = []
    call.on('data', (m) => got.push(m.toString()))
    call.on('error', () => {})
    call.on('status', (s) => resolve({ got, code: s.code }))
  })
}

async function calls (client, name) {
  const unary = (method, message, metadata = new grpc.Metadata(), options = {}) => new Promise((resolve) => {
    const out = { head: null, tail: null }
    const call = client.makeUnaryRequest('/conf.Test/' + method, same, same, Buffer.from(message), metadata, options, (err, reply) => {
      out.err = err
      out.reply = reply
    })
    call.on('metadata', (m) => { out.head = m })
    call.on('status', (s) => { out.code = s.code; out.details = s.details; out.tail = s.metadata; setImmediate(() => resolve(out)) })
  })
  const chat = (method) => client.makeBidiStreamRequest('/conf.Test/' + method, same, same, new grpc.Metadata())
  const sum = (messages) => new Promise((resolve, reject) => {
    const call = client.makeClientStreamRequest('/conf.Test/Sum', same, same, new grpc.Metadata(), (err, reply) => err ? reject(err) : resolve(reply.toString()))
    for (const m of messages) call.write(m)
    call.end()
  })
  const say = (...what) => console.log(name, ...what)

  const metadata = new grpc.Metadata()
  metadata.add('x-echo', 'one'); metadata.add('x-echo', 'two'); metadata.add('x-echo-bin', Buffer.from([0, 255, 1]))
  const echo = await unary('Unary', 'hello', metadata)
  say('unary', echo.reply.toString(), echo.head.get('x-echo').join(',').replace(/ /g, ''), echo.tail.get('x-echo-bin')[0].toString('hex'))
  say('empty', (await unary('Unary', '')).reply.length)
  const large = Buffer.alloc(3 << 20, 'x')
  say('large', (await unary('Unary', large)).reply.equals(large))
  let down = await collect(client.makeServerStreamRequest('/conf.Test/Count', same, same, Buffer.from('500'), new grpc.Metadata()))
  say('server stream', down.got.length, down.got[499], down.code)
  down = await collect(client.makeServerStreamRequest('/conf.Test/Count', same, same, Buffer.from('0'), new grpc.Metadata()))
  say('empty server stream', down.got.length, down.code)
  say('client stream', await sum(Array(500).fill(Buffer.from('12345'))))
  say('empty client stream', await sum([]))
  const talk = chat('Chat')
  const heard = collect(talk)
  for (let i = 0; i < 100; i++) talk.write(Buffer.from(String(i)))
  talk.end()
  const { got, code } = await heard
  say('chat', got.length, got[99], code)
  let empty = 0
  for (let i = 0; i < streams; i++) {
    const s = chat('Chat')
    const ended = collect(s)
    s.end()
    const r = await ended
    if (r.code === 0 && r.got.length === 0) empty++
  }
  say('empty streams', empty)
  const many = await Promise.all(Array.from({ length: 100 }, (_, i) => unary('Unary', String(i))))
  say('at once', many.filter((c, i) => c.reply && c.reply.toString() === String(i)).length)
  const failed = await unary('Fail', '')
  say('status', failed.code, JSON.stringify(failed.details) === '"b\u00e4d 100%\\n"', failed.tail.get('grpc-status-details-bin')[0].toString('hex'))
  say('unimplemented', (await unary('Nothing', '')).code)
  say('told', (await unary('Deadline', '', new grpc.Metadata(), { deadline: Date.now() + 1800000 })).reply.toString())
  const overdue = async (wait) => (await unary('Sleep', '', new grpc.Metadata(), { deadline: Date.now() + wait })).code
  const cancel = (wait) => new Promise((resolve) => {
    const hang = client.makeUnaryRequest('/conf.Test/Sleep', same, same, Buffer.from(''), new grpc.Metadata(), {}, () => {})
    hang.on('status', (s) => resolve(s.code))
    setTimeout(() => hang.cancel(), wait)
  })
  const ended = async () => Number((await unary('Cancelled', '')).reply.toString())
  // A call may end before a busy machine has passed it on: then it is made again, with more time.
  const untilHeard = async (name, call) => {
    let known = false
    let code
    for (let wait = 500; wait <= 32000 && !known; wait *= 4) {
      const before = await ended()
      code = await call(wait)
      const until = Date.now() + 5000
      while (!(known = await ended() > before) && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 20))
    }
    say(name, code)
    return known
  }
  const both = [await untilHeard('deadline', overdue), await untilHeard('cancel', cancel)]
  say('the service has heard of both', both.every((known) => known))
}

async function main () {
  for (const [name, options] of [['plain', {}], ['gzip', { 'grpc.default_compression_algorithm': 2 }]]) {
    const client = new grpc.Client(address, grpc.credentials.createInsecure(), { 'grpc.max_receive_message_length': -1, 'grpc.enable_retries': 0, ...options })
    await calls(client, name)
    client.close()
  }
}
main().then(() => process.exit(0), (err) => { console.log(err); process.exit(1) })
