// Package letter is how a message's failures are written into the headers of retry topics and dead-letter topics, and
// read from them: Abate's own way, Spring Kafka's, and those of Kafka Connect, Kafka Streams and share groups.
//
// A forwarded record is the original one, key, value and headers byte for byte, with these headers after its own:
//
//	abate-letter         how many original headers stand before this one: what is before it is never touched
//	abate-id             identity of this forward: group/topic/partition/offset/forward
//	abate-failures       deliveries that failed
//	abate-due            when it is to be delivered again, RFC 3339; not on dead letters
//	abate-first-failure  RFC 3339
//	abate-last-failure   RFC 3339
//	abate-reason         retry, excused, parked, flood, permanent, never-retry, exhausted, timeout, poison-batch
//	abate-history        one failure a line, the oldest first: time, topic, class
//	abate-replays        how often it was replayed from a dead-letter topic
//	abate-replayed-from  topic/partition/offset of the dead letter it was replayed from
//	abate-replayed-to    the topic it was replayed to, if that is another one than that of its identity
//	abate-identity       topic/partition/offset@timestamp where the message was written first, for its whole life
//	abate-imported       ID of the import that wrote the dead letter
//	abate-pointer        topic/partition/offset where the value is, if it was too large to be forwarded
//
// and those of Spring Kafka's retry topics, in Spring's binary forms, so that Spring and Abate can share one chain: the
// number of the next delivery and when it is due (retry_topic-attempts, -backoff-timestamp, -original-timestamp), where
// the message came from (kafka_original-topic, -partition, -offset, -timestamp, -timestamp-type,
// kafka_dlt-original-consumer-group) and the last error (kafka_exception-fqcn, -cause-fqcn, -message, -stacktrace).
// They are not written twice under names of our own.
//
// Reading follows Spring: of several headers with one name the last counts, but of those that say where the message
// came from the first. A header that cannot be read counts as absent, and is told as a problem; nothing that somebody
// else wrote keeps a record from being a Letter. When Spring has forwarded a record since Abate did, which its number
// of attempts tells, what Spring says about the failure counts.
//
// A message may have headers with such names from the beginning, when people copy records by hand. In front of
// abate-letter they are originals like all others. In a main topic (ReadMain) only Abate's own names are left out of
// Headers, and of what they say only the replays and the identity are believed, and these only where abate-identity or
// abate-replayed-to names this topic: programs that read messages and write others copy headers along. In a retry topic
// or a dead-letter topic without abate-letter (Read), which Spring or somebody else has written, the names of Abate and
// of one other family are taken to be about failures: Spring's in retry topics, else Spring's outside them, else those
// of Connect, Streams and share groups.
//
// A record that is too large for its topic loses first its trace, then its history, then its value (see Shrink). The
// letter is then a Pointer, and Fetch gets the value from where the message came from, as long as that topic keeps it.
package letter
