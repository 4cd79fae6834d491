// Package abatekafka delivers the messages of Kafka topics to a handler, under a guard, and loses none: a message that
// fails does not block its partition, is delivered again from a retry topic after 30 s, 5 min and 30 min, or as the
// policy says, and ends in a dead-letter topic with everything that is needed to understand and replay it.
//
//	consumer := &abatekafka.Consumer{
//		Brokers: []string{"localhost:9092"}, Group: "billing", Topics: []string{"payments"},
//		Guard:      guard, // of what the handler calls
//		Redelivery: redelivery.Config{Tiers: []time.Duration{30 * time.Second, 5 * time.Minute}}.Always(),
//		Handler:    func(ctx context.Context, m *abatekafka.Message) error { return charge(ctx, m.Value) },
//	}
//	err := consumer.Run(ctx)
//
// # What is promised
//
// An offset is committed when everything before it is handled, or acknowledged by the topic it was forwarded to. A
// forward that fails stops its partition and is sent again; nothing is skipped. Deliveries are at least once: effects
// are made once by [Once], or better in the transaction of the effect (abatesql). With ExactlyOnce in the policy a
// forward and its offset are one transaction. While the circuit of the guard is open nothing is delivered, and no
// failure counts against a message. docs/kafka.md has the rest: order, rebalances, dead letters, Spring.
//
// # Rooms
//
// From the bottom up; a room knows nothing of those above it, which a test of internal/tidy holds.
//
//   - messages and identity: message.go, messageid.go, chain.go (the names of topics), forward.go (the record for the
//     next topic), reporter.go; once.go remembers what was handled; clients.go makes clients
//   - topics and names: preflight.go checks the topics before anything is consumed
//   - delivery and verdict: service.go (the policy in force), deliverer.go and delivery.go (the handler under the
//     guard), verdict.go (what redelivery.Plan says of a failure), park.go (the order of keys)
//   - the partition's work: window.go (the records of a redelivery.Lane), partition.go and worker.go (its driver),
//     send.go
//   - the session with the brokers: poll.go, session.go, rebalance.go, commit.go, transact.go, poison.go, parkings.go
//   - the whole: consumer.go (what people fill in), running.go (begin, run, drain), watch.go (state and reports)
//
// Nothing here decides: that is policy/redelivery, which the simulator runs too.
//
// # Cost
//
// A message that is handled costs one allocation and about 0.7 µs more than a bare loop over franz-go; memory holds at
// most 32 MiB of unfinished messages for each partition, and 16 MiB that wait behind them.
package abatekafka
