// Package abatekafka delivers the messages of Kafka topics to a handler, under a guard, and loses none: a message that fails does
// not block its partition, is delivered again from a retry topic after 30 s, 5 min and 30 min, or as the policy says, and ends in
// a dead-letter topic with everything that is needed to understand and replay it.
//
//	consumer := &abatekafka.Consumer{
//		Brokers: []string{"localhost:9092"}, Group: "billing", Topics: []string{"payments"},
//		Guard:   guard, // its policy's Kafka section has the retry topics
//		Handler: func(ctx context.Context, m *abatekafka.Message) error { return charge(ctx, m.Value) },
//	}
//	err := consumer.Run(ctx)
package abatekafka
