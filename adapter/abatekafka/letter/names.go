package letter

import "strings"

// The headers that Abate writes, besides Spring's.
const (
	headLetter       = "abate-letter"
	headID           = "abate-id"
	headFailures     = "abate-failures"
	headDue          = "abate-due"
	headFirst        = "abate-first-failure"
	headLast         = "abate-last-failure"
	headReason       = "abate-reason"
	headHistory      = "abate-history"
	headReplays      = "abate-replays"
	headReplayedFrom = "abate-replayed-from"
	headReplayedTo   = "abate-replayed-to"
	headPointer      = "abate-pointer"
	headIdentity     = "abate-identity"
	headImported     = "abate-imported"
)

// The headers of Spring Kafka. The consumer group has "dlt" in its name in retry topics, too.
const (
	springAttempts          = "retry_topic-attempts"
	springDue               = "retry_topic-backoff-timestamp"
	springFirstTimestamp    = "retry_topic-original-timestamp"
	springGroup             = "kafka_dlt-original-consumer-group"
	springTopic             = "kafka_original-topic"
	springPartition         = "kafka_original-partition"
	springOffset            = "kafka_original-offset"
	springTimestamp         = "kafka_original-timestamp"
	springTimestampType     = "kafka_original-timestamp-type"
	springClass             = "kafka_exception-fqcn"
	springCause             = "kafka_exception-cause-fqcn"
	springMessage           = "kafka_exception-message"
	springTrace             = "kafka_exception-stacktrace"
	springKeyClass          = "kafka_key-exception-fqcn"
	springKeyMessage        = "kafka_key-exception-message"
	springKeyTrace          = "kafka_key-exception-stacktrace"
	springDeserializer      = "springDeserializerException"
	springDLT               = "kafka_dlt-" // outside retry topics: kafka_dlt-original-topic for kafka_original-topic
	prefixSpring            = "kafka_"
	prefixConnect           = "__connect.errors."
	prefixStreams           = "__streams.errors."
	prefixShare             = "__dlq.errors."
	shareDeliveries         = prefixShare + "delivery.count"
	connectName             = prefixConnect + "connector.name"
	connectStage            = prefixConnect + "stage"
	connectExceptionClass   = prefixConnect + "exception.class.name"
	connectExceptionMessage = prefixConnect + "exception.message"
	connectExceptionTrace   = prefixConnect + "exception.stacktrace"
)

// family is whose header a name is.
type family uint8

const (
	foreign     family = iota // the message's own
	ours                      // Abate's
	retry                     // of Spring's retry topics
	deadSpring                // of Spring outside retry topics
	elsewhere                 // of Connect, Streams or share groups
	neverCopied               // Java objects that only one process of Spring should see
)

// familyOf knows exact names only: kafka_correlationId and abate-tenant are the message's own.
func familyOf(name string) family {
	switch name {
	case headLetter, headID, headFailures, headDue, headFirst, headLast, headReason, headHistory, headReplays,
		headReplayedFrom, headPointer,
		headReplayedTo, headIdentity, headImported:
		return ours
	case springAttempts, springDue, springFirstTimestamp:
		return retry
	}
	switch {
	case strings.HasPrefix(name, prefixSpring):
		return familyOfSpring(name)
	case strings.HasPrefix(name, prefixConnect), strings.HasPrefix(name, prefixStreams),
		strings.HasPrefix(name, prefixShare):
		return elsewhere
	case strings.HasPrefix(name, springDeserializer):
		return neverCopied
	}
	return foreign
}

func familyOfSpring(name string) family {
	switch name {
	case springGroup, springTopic, springPartition, springOffset, springTimestamp, springTimestampType,
		springClass, springCause, springMessage, springTrace, springKeyClass, springKeyMessage, springKeyTrace:
		return retry
	}
	if rest, ok := strings.CutPrefix(name, springDLT); ok && familyOfSpring(prefixSpring+rest) == retry {
		return deadSpring
	}
	return foreign
}

// firstWins reports whether the first of several headers counts: Spring may append where a message came from at every
// hop.
func firstWins(name string) bool {
	return strings.HasPrefix(name, "kafka_original-") || strings.HasPrefix(name, "kafka_dlt-original-")
}
