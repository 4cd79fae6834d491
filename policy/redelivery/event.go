package redelivery

import "time"

// EventKind says what happened to a message or a partition.
type EventKind uint8

// The kinds.
const (
	// Delivered: the handler got a message, after Lateness. Followed by one of the next five.
	Delivered EventKind = iota + 1
	// Handled: the handler succeeded, after Latency.
	Handled
	// Forwarded: it failed and was put into the retry topic To, for Reason; acknowledged.
	Forwarded
	// DeadLettered: it was put into the dead-letter topic, for Reason; acknowledged.
	DeadLettered
	// Dropped: it was forgotten, as the policy says.
	Dropped
	// Held: it stays and will be delivered again after Delay.
	Held
	// Parked: it was forwarded undelivered, behind another with its key.
	Parked
	// Duplicate: it was not delivered, because it had been (Once).
	Duplicate
	// Paused and Resumed: nothing of the partition is delivered, for Reason: circuit-open, forward-failed, window-full,
	// pace, rebalance, poison-batch.
	Paused
	Resumed
	// ForwardFailed: the retry or dead-letter topic did not take it. Nothing is skipped; it will be tried again after
	// Delay.
	ForwardFailed
	// Stuck: a handler has run longer than its time.
	Stuck
	// FloodBegan and FloodEnded: so many messages would be given up that these are held in the last retry topic, for
	// Reason; and not any more.
	FloodBegan
	FloodEnded
	// Draining: what an outage left behind is being worked off, for about Delay more, 0 if nobody knows. Reported once a
	// minute.
	Draining
	// Foreign: it was found in a retry topic, but another group failed at it, and is the one to deliver it: it is
	// passed over.
	Foreign
)

// Event is one thing that happened. It is passed by value.
type Event struct {
	Kind      EventKind
	Service   string // the guard's name
	Group     string
	Topic     string // where it was read
	Partition int32
	Offset    int64
	Tier      int    // of Topic; Main for the main topic
	To        string // the topic it was forwarded to
	Reason    string
	Class     string // of the error
	Delivery  int
	Lateness  time.Duration // delivered − due, from retry topics only
	Latency   time.Duration // what the handler took
	Delay     time.Duration // of Forwarded, Held and ForwardFailed; of Draining the time that is left
	Err       error
}

// Observer observes everything a consumer does. It is called on the goroutine that caused the event, with no lock held,
// and must be quick.
type Observer interface{ ObserveRedelivery(Event) }

// PartitionState is one partition at one moment, for dashboards and people.
type PartitionState struct {
	Topic     string
	Partition int32
	Tier      int
	Lag       int64         // records in the log that are not committed yet
	Committed int64         // next offset to be committed
	HeadAge   time.Duration // how long the oldest unfinished record has been due
	Paused    string        // why nothing is delivered; empty when it is
	Since     time.Duration // how long it has been paused
	Lane      LaneState
}

// State is a consumer at one moment.
type State struct {
	Service, Group string
	Partitions     []PartitionState
	Pace           PaceState
	Flood          FloodState
	OldestHandler  time.Duration // how long the handler that has run longest has been running
	Parked         int
}
