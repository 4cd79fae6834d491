package abatebolt

import (
	"encoding/binary"
	"math"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/abate-go/abate/policy/idempotency"
)

// The buckets of the file.
var (
	keysName    = []byte("keys")    // key: record
	dueName     = []byte("due")     // time, key: nothing; for those that expire
	doneName    = []byte("done")    // time, place: key; in the order in which they were finished
	answersName = []byte("answers") // time, place: answer
	metaName    = []byte("meta")
	countName   = []byte("count") // how many keys, how many bytes
)

// A call forgets at most so many expired keys, and drops at most so many answers to make room.
const (
	forgetsPerCall = 16
	dropsPerCall   = 128
)

// tx is one write to the file, of the calls that came together.
type tx struct {
	keys, due, done, answers, meta *bolt.Bucket

	now, max int64
	floor    int64
	count    count
	early    int64         // finished keys that were forgotten before their time
	age      time.Duration // of the last of them
}

// count is what the file holds.
type count struct{ keys, bytes int64 }

func (c count) encode() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(c.keys)), uint64(c.bytes))
}

func parseCount(b []byte) (c count, err error) {
	if len(b) == 0 {
		return c, nil
	}
	if len(b) != 16 {
		return c, errRecord
	}
	return count{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}, nil
}

// open finds the buckets, and makes those that are not there yet.
func (t *tx) open(b *bolt.Tx) (err error) {
	for _, one := range []struct {
		to   **bolt.Bucket
		name []byte
	}{{&t.keys, keysName}, {&t.due, dueName}, {&t.done, doneName}, {&t.answers, answersName}, {&t.meta, metaName}} {
		if *one.to, err = b.CreateBucketIfNotExists(one.name); err != nil {
			return err
		}
	}
	t.count, err = parseCount(t.meta.Get(countName))
	return err
}

// find returns the record of a key, nil if there is none or its time is over.
func find(keys *bolt.Bucket, key string, now int64) (*record, error) {
	b := keys.Get([]byte(key))
	if b == nil {
		return nil, nil
	}
	r, err := parseRecord(b)
	if err != nil || r.due <= now {
		return nil, err
	}
	return &r, nil
}

// put writes a record. before is the one that it replaces, nil if the key is new.
func (t *tx) put(key string, r, before *record) error {
	if before == nil || before.due != r.due {
		if before != nil {
			if err := t.due.Delete(at(before.due, []byte(key))); err != nil {
				return err
			}
		}
		if err := t.due.Put(at(r.due, []byte(key)), []byte{}); err != nil {
			return err
		}
	}
	if before == nil {
		t.count.keys++
		t.count.bytes += costOf(key)
	}
	return t.keys.Put([]byte(key), r.bytes())
}

func (t *tx) forget(key string) error {
	b := t.keys.Get([]byte(key))
	if b == nil {
		return nil
	}
	r, err := parseRecord(b)
	if err != nil {
		return err
	}
	if r.done {
		place := r.finished()
		if answer := t.answers.Get(place); answer != nil {
			t.count.bytes -= answerCost + int64(len(answer))
			if err := t.answers.Delete(place); err != nil {
				return err
			}
		}
		if err := t.done.Delete(place); err != nil {
			return err
		}
	}
	if err := t.due.Delete(at(r.due, []byte(key))); err != nil {
		return err
	}
	t.count.keys--
	t.count.bytes -= costOf(key)
	return t.keys.Delete([]byte(key))
}

// expire forgets a few of the keys whose time is over.
func (t *tx) expire() error {
	for range forgetsPerCall {
		_, first, _ := cursor(t.due)
		if first == nil || timeOf(first) > t.now {
			return nil
		}
		if err := t.forget(string(first[8:])); err != nil {
			return err
		}
	}
	return nil
}

// room makes room for size bytes, by dropping the oldest answers if need be. If a few are not enough it drops none.
func (t *tx) room(size int64) (bool, error) {
	free, n := t.max-t.count.bytes, 0
	for c, k, v := cursor(t.answers); free < size; n++ {
		if n == dropsPerCall || k == nil {
			return false, nil
		}
		free += answerCost + int64(len(v))
		k, v = c.Next()
	}
	for range n {
		_, k, v := cursor(t.answers)
		size := answerCost + int64(len(v))
		if err := t.answers.Delete(k); err != nil {
			return false, err
		}
		t.count.bytes -= size
	}
	return true, nil
}

func cursor(b *bolt.Bucket) (c *bolt.Cursor, k, v []byte) {
	c = b.Cursor()
	k, v = c.First()
	return c, k, v
}

// shorten makes room for size bytes, which no answer makes, by forgetting the finished keys that are oldest, if it may.
func (t *tx) shorten(size int64) (bool, error) {
	for range forgetsPerCall {
		_, place, key := cursor(t.done)
		if place == nil {
			return false, nil
		}
		age := t.now - timeOf(place)
		if age < t.floor {
			return false, nil
		}
		if err := t.forget(string(key)); err != nil {
			return false, err
		}
		t.early++
		if t.age = time.Duration(age); t.max-t.count.bytes >= size {
			return true, nil
		}
	}
	return false, nil
}

// begin decides about a key. Reading alone has not.
func (t *tx) begin(key string, fp idempotency.Fingerprint, lease time.Duration) (begun idempotency.Begun, err error) {
	r, err := find(t.keys, key, t.now)
	if err != nil {
		return begun, err
	}
	if r != nil {
		if begun, decided, err := decide(t.answers, r, fp, t.now); decided || err != nil {
			return begun, err
		}
	}
	next := record{fp: fp}
	if r != nil {
		next, next.takenOver = *r, true
	} else if err := t.admit(key); err != nil {
		return begun, err
	}
	if next.token, err = t.meta.NextSequence(); err != nil {
		return begun, err
	}
	t.hold(&next, after(t.now, lease))
	if err := t.put(key, &next, r); err != nil {
		return begun, err
	}
	return idempotency.Begun{State: idempotency.Run, Token: next.token, TakenOver: next.takenOver}, nil
}

// admit makes room for a new key, and forgets what an expired one has left.
func (t *tx) admit(key string) error {
	if err := t.forget(key); err != nil {
		return err
	}
	size := costOf(key)
	ok, err := t.room(size)
	if !ok && err == nil {
		ok, err = t.shorten(size)
	}
	if !ok && err == nil {
		err = idempotency.ErrFull
	}
	return err
}

// decide says what is to be done with a request whose key is known, unless it is to take over.
func decide(answers *bolt.Bucket, r *record, fp idempotency.Fingerprint, now int64) (
	begun idempotency.Begun, decided bool, err error) {
	switch {
	case r.fp != fp:
		return idempotency.Begun{State: idempotency.Mismatch}, true, nil
	case r.done:
		begun = idempotency.Begun{
			State: idempotency.Replay, Response: idempotency.Response{Status: int(r.status), Truncated: true},
		}
		if b := answers.Get(r.finished()); r.answered && b != nil {
			begun.Response, err = idempotency.ParseResponse(append([]byte(nil), b...)) // b is the file's
		}
		return begun, true, err
	case r.lease > now:
		return idempotency.Begun{State: idempotency.Running, Lease: time.Duration(r.lease - now)}, true, nil
	}
	return begun, false, nil
}

// held calls change with the record of a key that token holds, and writes what becomes of it.
func (t *tx) held(key string, token uint64, change func(r *record) error) error {
	r, err := find(t.keys, key, t.now)
	if err != nil {
		return err
	}
	if r == nil || r.done || r.token != token || token == 0 {
		return idempotency.ErrLost
	}
	next := *r
	if err := change(&next); err != nil {
		return err
	}
	return t.put(key, &next, r)
}

// complete stores an answer; none if it is to be kept as truncated. The attempt that has completed may say so again: a
// lost confirmation is no lost key, and a whole answer takes the place of a truncated one.
func (t *tx) complete(key string, token uint64, status int, answer []byte, retention time.Duration) error {
	r, err := find(t.keys, key, t.now)
	if err != nil {
		return err
	}
	if r == nil || r.token != token || token == 0 {
		return idempotency.ErrLost
	}
	if r.done && (len(answer) == 0 || t.answers.Get(r.finished()) != nil) {
		return nil // what was stored stays
	}
	fits, size := false, answerCost+int64(len(answer))
	if len(answer) > 0 {
		if fits, err = t.room(size); err != nil || r.done && !fits {
			return err
		}
	}
	next := *r
	if r.done { // it is the newest again
		if err := t.done.Delete(r.finished()); err != nil {
			return err
		}
	}
	next.done, next.status, next.lease, next.due = true, int64(status), t.now, after(t.now, retention)
	if next.place, err = t.done.NextSequence(); err != nil {
		return err
	}
	if next.answered = fits; fits {
		if err := t.answers.Put(next.finished(), answer); err != nil {
			return err
		}
		t.count.bytes += size
	}
	if err := t.done.Put(next.finished(), []byte(key)); err != nil {
		return err
	}
	return t.put(key, &next, r)
}

func (t *tx) hold(r *record, lease int64) {
	r.lease, r.due = lease, after(lease, idempotency.Abandoned)
}

// after is now + d without overflow. A negative d is none.
func after(now int64, d time.Duration) int64 {
	return now + min(max(int64(d), 0), math.MaxInt64-max(now, 0))
}
