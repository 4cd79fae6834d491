package page

import (
	"container/heap"
	"fmt"
	"net/http"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
)

// newest keeps the newest letters that come after a place of the list. They are kept as they are shown: an entry would
// hold on to the whole batch that it was read with.
type newest struct {
	after *rank // nil for all
	max   int
	show  func(*dlq.Entry) summary
	all   []summary // a heap: the last of the list on top
	count int       // of all that were offered
	more  bool      // there are some behind these
}

// rank is where a letter stands in the list: the newest first, then by place.
type rank struct {
	written   time.Time
	partition int32
	offset    int64
}

func (r rank) before(other rank) bool {
	if c := r.written.Compare(other.written); c != 0 {
		return c > 0
	}
	if r.partition != other.partition {
		return r.partition < other.partition
	}
	return r.offset > other.offset
}

func (s *summary) rank() rank { return rank{s.Written, s.Partition, s.Offset} }

// cursor names the last letter of a page, so that the next goes on behind it, whatever has come meanwhile.
func (r rank) cursor() string {
	return fmt.Sprintf("%d.%d.%d", r.written.UnixNano(), r.partition, r.offset)
}

func parseCursor(text string) (*rank, error) {
	var r rank
	var at int64
	if n, err := fmt.Sscanf(text, "%d.%d.%d", &at, &r.partition, &r.offset); n != 3 || err != nil {
		return nil, refuse(http.StatusBadRequest, "after is not the next of an answer: %q", cut(text, 60))
	}
	r.written = time.Unix(0, at)
	return &r, nil
}

func (n *newest) offer(e *dlq.Entry) {
	n.count++
	at := rank{e.Written, e.At.Partition, e.At.Offset}
	switch {
	case n.after != nil && !n.after.before(at):
	case len(n.all) < n.max:
		heap.Push(n, n.show(e))
	default:
		n.more = true
		if at.before(n.all[0].rank()) {
			n.all[0] = n.show(e)
			heap.Fix(n, 0)
		}
	}
}

// taken empties the heap into the order of the list. next is what the next page begins after, empty for none.
func (n *newest) taken() (list []summary, next string) {
	list = make([]summary, len(n.all))
	for i := len(list) - 1; i >= 0; i-- {
		list[i] = heap.Pop(n).(summary)
	}
	if n.more {
		next = list[len(list)-1].rank().cursor()
	}
	return list, next
}

// Len is for package heap, as are the next four.
func (n *newest) Len() int { return len(n.all) }

// Less puts the last of the list on top.
func (n *newest) Less(i, j int) bool { return n.all[j].rank().before(n.all[i].rank()) }

// Swap exchanges two.
func (n *newest) Swap(i, j int) { n.all[i], n.all[j] = n.all[j], n.all[i] }

// Push adds one.
func (n *newest) Push(s any) { n.all = append(n.all, s.(summary)) }

// Pop takes the last one.
func (n *newest) Pop() any {
	last := n.all[len(n.all)-1]
	n.all = n.all[:len(n.all)-1]
	return last
}
