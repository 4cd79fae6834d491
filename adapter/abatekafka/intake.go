package abatekafka

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// intake has the client fetch a partition or not: not while too much of it waits in memory, and not while its next
// batch cannot be decoded. The client remembers that for a partition that is not assigned, too. It has no lock: its
// partition has one.
type intake struct {
	client   *kgo.Client
	at       place
	limit    *atomic.Int64 // how many bytes of one partition may wait in memory
	full     bool
	poisoned bool
}

// holds takes note of how many bytes wait in memory.
func (i *intake) holds(bytes int64) {
	switch limit := i.limit.Load(); {
	case !i.full && bytes > limit:
		i.full = true
		i.client.PauseFetchPartitions(i.at.single())
	case i.full && bytes <= limit/2:
		i.full = false
		if !i.poisoned {
			i.client.ResumeFetchPartitions(i.at.single())
		}
	}
}

// poison has the client fetch a poisoned partition no more, or again.
func (i *intake) poison(on bool) {
	if i.poisoned = on; on {
		i.client.PauseFetchPartitions(i.at.single())
	} else if !i.full {
		i.client.ResumeFetchPartitions(i.at.single())
	}
}

// end leaves the client as it was found: the partition would be silent if it came back.
func (i *intake) end() {
	if i.full || i.poisoned {
		i.full = false
		i.client.ResumeFetchPartitions(i.at.single())
	}
}
