package page

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

// Content is what is shown of some bytes.
type Content = content

// Show shows bytes, with values hidden or not.
func Show(b []byte, hide bool) Content {
	return (&Page{config: Config{HideValues: hide}}).show(b, true)
}

// Pages reads a list page by page, as a browser would, while every page sees the letters in another order. It returns
// the places in their order.
func Pages(r *rand.Rand, written []int, max int) (places []int64, pages int) {
	p := &Page{}
	list, next := []summary(nil), ""
	for {
		n := &newest{max: max, show: p.summary}
		if next != "" {
			after, err := parseCursor(next)
			if err != nil {
				panic(err)
			}
			n.after = after
		}
		for _, i := range r.Perm(len(written)) {
			n.offer(&dlq.Entry{
				At: letter.Place{Partition: int32(i % 3), Offset: int64(i)}, Written: time.Unix(int64(written[i]), 5),
			})
		}
		list, next = n.taken()
		for _, s := range list {
			places = append(places, s.Offset)
		}
		if pages++; next == "" {
			return places, pages
		}
	}
}

// Sorted is the order that a list has.
func Sorted(written []int) []int64 {
	var ranks []rank
	for i := range written {
		ranks = append(ranks, rank{time.Unix(int64(written[i]), 5), int32(i % 3), int64(i)})
	}
	slices.SortFunc(ranks, func(a, b rank) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	var places []int64
	for _, r := range ranks {
		places = append(places, r.offset)
	}
	return places
}
