// A gRPC service of a program that knows nothing of Abate: Node's grpc-js, with bytes for messages. It prints its port, and ends when its
// standard input does. conformance_server.py is the same in Python.
'use strict'
const grpc = require('@grpc/grpc-js')
const same = (b) => b
const details = Buffer.from('08091203626164', 'hex')
let cancelled = 0

const method = (name, requestStream, responseStream) => ({
  path: '/conf.Test/' + name, requestStream, responseStream,
  requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same
})

const service = {
  Unary: method('Unary', false, false), Fail: method('Fail', false, false), Sleep: method('Sleep', false, false),
  Cancelled: method('Cancelled', false, false), Deadline: method('Deadline', false, false),
  Count: method('Count', false, true), Sum: method('Sum', true, false), Chat: method('Chat', true, true)
}

const implementation = {
  Unary (call, done) {
    const head = new grpc.Metadata()
    for (const v of call.metadata.get('x-echo')) head.add('x-echo', v)
    call.sendMetadata(head)
    const tail = new grpc.Metadata()
    for (const v of call.metadata.get('x-echo-bin')) tail.add('x-echo-bin', v)
    done(null, call.request, tail)
  },
  Fail (call, done) {
    const tail = new grpc.Metadata()
    tail.set('grpc-status-details-bin', details)
    done({ code: grpc.status.FAILED_PRECONDITION, details: 'b\u00e4d 100%\n', metadata: tail })
  },
  Sleep (call) { call.on('cancelled', () => { cancelled++ }) },
  Cancelled (call, done) { done(null, Buffer.from(String(cancelled))) },
  Deadline (call, done) {
    const until = call.getDeadline()
    const left = until === Infinity ? 0 : (until - Date.now()) / 1000
    done(null, Buffer.from(left > 0 && left <= 3600 ? 'within the hour' : left > 0 ? 'later' : 'none'))
  },
  Count (call) {
    const n = Number(call.request.toString())
    for (let i = 0; i < n; i++) call.write(Buffer.from(String(i)))
    call.end()
  },
  Sum (call, done) {
    let messages = 0; let bytes = 0
    call.on('data', (m) => { messages++; bytes += m.length })
    call.on('end', () => done(null, Buffer.from(`${messages} messages, ${bytes} bytes`)))
  },
  Chat (call) {
    call.on('data', (m) => call.write(m))
    call.on('end', () => call.end())
  }
}

const server = new grpc.Server({ 'grpc.default_compression_algorithm': 2, 'grpc.max_receive_message_length': -1 })
server.addService(service, implementation)
server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (err, port) => {
  if (err) throw err
  console.log(port)
})
process.stdin.on('end', () => process.exit(0)).resume()
