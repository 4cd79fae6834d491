package dlq

import "fmt"

// ramp decides how many letters a replay sends at once, and when too many of them have failed again. The sizes grow 1,
// 2, 5, 10, 20, 50, ... 10000, so that a mistake that is still there costs one message, and a hundred thousand letters
// need 21 batches. (ServicePulse replays in growing batches, too.)
type ramp struct {
	limit float64 // share of a batch, and of all, that may fail again

	batches    int // begun
	size       int // of the batch under way
	sent, back int // of it
	allSent    int
	allBack    int
}

const largestBatch = 10_000

// begin starts a batch and says how large it is.
func (r *ramp) begin() int {
	steps := [...]int{1, 2, 5}
	size := steps[r.batches%3]
	for i := r.batches / 3; i > 0 && size < largestBatch; i-- {
		size *= 10
	}
	r.batches++
	r.size, r.sent, r.back = min(size, largestBatch), 0, 0
	return r.size
}

// count takes n letters that were sent. The batch is full when it has as many as begin said.
func (r *ramp) count(n int) (full bool) {
	r.sent += n
	r.allSent += n
	return r.sent >= r.size
}

// failed takes one that has failed again; of the batch under way or of an earlier one.
func (r *ramp) failed(now bool) {
	r.allBack++
	if now {
		r.back++
	}
}

// hopeless tells, while a batch is being sent, that more of it have failed than may of all of it.
func (r *ramp) hopeless() (why string, stop bool) {
	return r.judge(r.back, r.size, "the batch")
}

// verdict tells, when a batch has settled, whether too many of it or of all so far have failed.
func (r *ramp) verdict() (why string, stop bool) {
	if why, stop = r.judge(r.back, r.sent, "the batch"); stop {
		return why, stop
	}
	return r.judge(r.allBack, r.allSent, "all that were sent")
}

func (r *ramp) judge(back, of int, what string) (string, bool) {
	if back == 0 || float64(back) <= r.limit*float64(of) {
		return "", false
	}
	return fmt.Sprintf("%d of %d of %s failed again, more than %.3g %%", back, of, what, 100*r.limit), true
}
