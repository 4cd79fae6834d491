// Package dlq is for people who work with dead letters: look at them in groups, replay them carefully, delete and
// restore them.
//
// Why: a dead letter is a customer's payment that did not happen, found by somebody at 3 a.m. Tools for Kafka show the
// records of a topic; they do not say which hundred thousand of them are one mistake, do not put them back where they
// came from, and when they do, all at once, into a service that has just recovered.
//
// # What is where
//
// The dead-letter topic is only read, by partition, without a consumer group. It is never changed: what people did to a
// letter is a record of a second topic, the audit, which is append-only and which everybody reads before each action.
// So a deleted letter can be restored until the topic's retention takes it, and everything that was done can be read,
// with who and when.
//
// The audit is one partition, so that all its readers see one order. That order decides which replay is the active one:
// there is one at a time for a dead-letter topic. A replay tells every 10 s that it is alive; after a minute of silence
// another may start.
//
// # What a replay promises
//
// A letter is sent, the broker acknowledges it, then the audit says "replayed". A crash between the two repeats, when
// the replay is resumed, at most the letters in flight: a tenth of a second's worth, at most 100. Nothing is lost.
// Consumers that must do nothing twice recognise a repeat by its event id, or by the message's ID, which a replay does
// not change (abatekafka.Message.ID).
//
// The batches grow 1, 2, 5, 10, ... 10000. After each the replay waits until the group that reads the letters has
// committed an offset behind them: then each was handled, or has failed again and stands in a retry topic or as a new
// dead letter; with too many of those it stops. Where nobody reads, nothing is judged by silence: the replay ends and
// says how many are still waiting, and for whom. A letter that was replayed too often already is left out.
//
// # Twins
//
// A consumer that is killed between writing a letter and committing writes it again. Records with one group, one
// identity of the message, one number of replays, one key and one value are one letter: listed, counted, replayed and
// exported once, and what is done to one is done to all, also to those that come later.
//
// # Cost
//
// Reading streams: memory holds two fetches (1 MB each on the wire; letters of one mistake compress 20 times and more,
// so that they take some 60 MB), the groups' counters, some 50 bytes for each letter that is listed, so that none is
// listed twice, and some 70 bytes for each letter that was ever replayed or deleted and is still kept. Every call asks
// the broker where the audit ends: one or two round trips. There is no index: what a Filter's partition, offsets and
// From do not leave out is read, some 50,000 letters a second.
package dlq
