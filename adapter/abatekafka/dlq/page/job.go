package page

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
)

// job is the replay that runs here: at most one. It goes on when the page is closed in the browser.
type job struct {
	ctx  context.Context // done when the page is closed
	stop context.CancelFunc

	mu       sync.Mutex
	running  bool
	done     chan struct{} // closed when the last one has ended
	cancel   context.CancelFunc
	there    bool
	progress dlq.Progress
	failure  string // why it could not go on, if it returned an error
}

// start runs a replay on a goroutine, unless one runs.
func (j *job) start(ctx context.Context,
	run func(ctx context.Context, tell func(dlq.Progress)) (dlq.Progress, error)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ctx.Err() != nil {
		return refuse(http.StatusServiceUnavailable, "the page is shutting down")
	}
	if j.running {
		return refuse(http.StatusConflict, "a replay runs here already: wait for its end, or cancel it")
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // who asks is named in it; it outlives the request
	stopped := context.AfterFunc(j.ctx, cancel)
	done := make(chan struct{})
	j.running, j.there, j.done, j.cancel, j.progress, j.failure = true, true, done, cancel, dlq.Progress{
		Phase: dlq.Counting, Started: time.Now(), Updated: time.Now(),
	}, ""
	go func() {
		defer close(done)
		defer stopped()
		defer cancel()
		j.ended(run(ctx, j.tell))
	}()
	return nil
}

func (j *job) tell(p dlq.Progress) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.progress = p
}

func (j *job) ended(p dlq.Progress, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running = false
	if p.ID != "" || err == nil {
		j.progress = p
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		j.failure = err.Error()
	}
	if !j.progress.Phase.Ended() {
		j.progress.Phase = dlq.Stopped
		if errors.Is(err, context.Canceled) {
			j.progress.Phase = dlq.Cancelled
		}
	}
}

func (j *job) read() (p dlq.Progress, failure string, running, there bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.progress, j.failure, j.running, j.there
}

// end cancels the replay if it runs here and has this ID.
func (j *job) end(id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.running || id != "" && j.progress.ID != id {
		return false
	}
	j.cancel()
	return true
}

// close cancels what runs, refuses what comes and waits.
func (j *job) close() {
	j.mu.Lock()
	j.stop()
	done := j.done
	j.mu.Unlock()
	if done != nil {
		<-done
	}
}
