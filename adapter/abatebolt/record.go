package abatebolt

import (
	"encoding/binary"
	"errors"

	"github.com/abate-go/abate/policy/idempotency"
)

// record is what is remembered of a key. Times are nanoseconds of the wall clock since 1970.
type record struct {
	fp                        idempotency.Fingerprint
	token                     uint64 // of the attempt that holds the key, or held it last; 0 for nobody
	lease                     int64  // until when, while it is not done; then when it was done
	due                       int64  // when it is forgotten
	place                     uint64 // distinguishes keys that were done at the same time
	status                    int64
	done, takenOver, answered bool
}

const recordSize = len(idempotency.Fingerprint{}) + 5*8 + 1

var errRecord = errors.New("abatebolt: the file holds a record that is not one, or of a later version")

func (r *record) bytes() []byte {
	b := append(make([]byte, 0, recordSize), r.fp[:]...)
	for _, n := range [...]uint64{r.token, uint64(r.lease), uint64(r.due), r.place, uint64(r.status)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	var flags byte
	for i, on := range [...]bool{r.done, r.takenOver, r.answered} {
		if on {
			flags |= 1 << i
		}
	}
	return append(b, flags)
}

func parseRecord(b []byte) (r record, err error) {
	if len(b) != recordSize {
		return r, errRecord
	}
	n := copy(r.fp[:], b)
	number := func() uint64 {
		n += 8
		return binary.BigEndian.Uint64(b[n-8:])
	}
	r.token, r.lease, r.due, r.place, r.status = number(), int64(number()), int64(number()), number(), int64(number())
	flags := b[n]
	r.done, r.takenOver, r.answered = flags&1 != 0, flags&2 != 0, flags&4 != 0
	return r, nil
}

// at is a place in an index that is ordered by time. Times before 1970 are those of a machine without a clock, and come
// first.
func at(when int64, rest []byte) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(rest)), uint64(max(when, 0))), rest...)
}

// timeOf is the time at which a place in an index is.
func timeOf(place []byte) int64 { return int64(binary.BigEndian.Uint64(place)) }

// finished is the place of a key that is done, in the order of that.
func (r *record) finished() []byte {
	return at(r.lease, binary.BigEndian.AppendUint64(nil, r.place))
}

// What a key costs besides the key itself, which the file has three times, and an answer besides its bytes: what stands
// beside them in the file, and bbolt's own 16 bytes for each entry.
const (
	keyCost    = int64(recordSize) + 3*16 + 8 + 16
	answerCost = int64(16 + 16)
)

func costOf(key string) int64 { return keyCost + 3*int64(len(key)) }
