package scenario

import "time"

// Topic is a Kafka topic with the consumers that handle its messages. Each instance of the fleet owns an equal part of
// the partitions, and handles a message by the fleet's one call, under that call's guard. The key kafka of its policy
// says what becomes of a message that fails; without it, the message is tried again in place, one at a time in each
// partition, and what is behind it waits.
type Topic struct {
	// Partitions is how many the topic, and each of its retry topics, has.
	Partitions int `yaml:"partitions" range:"1..10000" example:"10"`
	// Keys is how many different keys messages have, each as likely as another; messages with the same key are in the
	// same partition. Default: no keys, and partitions in turn.
	Keys int `yaml:"keys" range:"1..100000000" example:"1000"`
	// Poison is the share of messages that nobody can handle: they fail whatever the service answers, however often.
	// Default: none.
	Poison float64 `yaml:"poison" range:"0.000001..1" percent:"true" example:"1%"`
	// Pause is how long a consumer without the key kafka in its policy waits before it tries a message again in place.
	// Default: 100ms.
	Pause time.Duration `yaml:"pause" range:"1ms..1h" example:"1s"`
}

// defaultPause is what consumers that retry in place commonly wait.
const defaultPause = 100 * time.Millisecond

// Again is Pause with its default.
func (t *Topic) Again() time.Duration {
	if t.Pause == 0 {
		return defaultPause
	}
	return t.Pause
}

// Consumes reports whether the fleet is a consumer group.
func (f *Fleet) Consumes() bool { return f.Topic.Partitions > 0 }
