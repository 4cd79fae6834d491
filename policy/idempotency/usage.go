package idempotency

import "time"

// Usage is how much a store holds, and how much it can hold.
type Usage struct {
	// Keys is the number of keys that are remembered, and MaxKeys how many there is room for, without answers, if they
	// are those of StoreKey.
	Keys, MaxKeys int64
	// Bytes is what keys and answers take up, and MaxBytes the bound of that.
	Bytes, MaxBytes int64
	// Oldest is how long ago the oldest of the finished keys was finished; zero if there is none.
	Oldest time.Duration
	// Shortened is what had to be forgotten before its time since the store was made.
	Shortened Shortened
}

// Held returns how long finished keys are remembered in fact: the retention, unless some were forgotten early, and the
// store has not grown old enough again since.
func (u Usage) Held(retention time.Duration) time.Duration {
	if u.Shortened.Keys == 0 {
		return retention
	}
	return min(max(u.Oldest, u.Shortened.Held), retention)
}

// Shortened says that a store was full and forgot finished keys before their retention was over. A repeat that comes
// after that is done again.
type Shortened struct {
	// Keys is how many there were.
	Keys int64
	// Held is how long the last of them was remembered: the retention that the store can hold.
	Held time.Duration
}

// Measured is a Store that can say how full it is.
type Measured interface {
	// Usage returns that. It is cheap enough for every scrape of metrics.
	Usage() Usage
}

// sampleKey is as long as those of StoreKey.
const sampleKey = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
