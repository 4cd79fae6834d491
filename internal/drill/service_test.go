package drill_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/drill"
)

// eventually waits until ok, for half a minute at most: as long as a busy machine needs, and no longer than it takes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); !ok(); <-tick.C {
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("half a minute on, still not: %s", what)
		}
	}
}

// post sends one charge and returns its status, 0 for none.
func post(ctx context.Context, url string) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		return 0
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode
}

func start(t *testing.T, c drill.ServiceConfig) (*drill.Service, *drill.Database) {
	t.Helper()
	database := new(drill.Database)
	service, err := drill.StartService(c, database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	t.Cleanup(service.Close)
	return service, database
}

func TestServiceRefusesWhenItsQueueIsFull(t *testing.T) {
	service, database := start(t, drill.ServiceConfig{Workers: 1, Queue: 1, DatabaseTimeout: time.Hour})
	database.Break()
	go post(t.Context(), service.URL())
	eventually(t, "a worker is busy", func() bool { return service.Counts().Worked == 1 })
	go post(t.Context(), service.URL())
	eventually(t, "the queue is full", func() bool { return service.Waiting() == 1 })
	if status := post(t.Context(), service.URL()); status != http.StatusServiceUnavailable {
		t.Errorf("status %d with a full queue, want 503", status)
	}
	if got, want := service.Counts(), (drill.ServiceCounts{Arrived: 3, Refused: 1, Worked: 1, LongestQueue: 1}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
}

func TestServiceWorksForCallersThatHaveLeft(t *testing.T) {
	service, database := start(t, drill.ServiceConfig{Workers: 1, Queue: 10, DatabaseTimeout: 200 * time.Millisecond})
	database.Break()
	go post(t.Context(), service.URL())
	eventually(t, "a worker is busy", func() bool { return service.Counts().Worked == 1 })
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		post(ctx, service.URL())
		close(left)
	}()
	eventually(t, "the second request waits", func() bool { return service.Waiting() == 1 && service.Counts().LongestQueue == 1 })
	leave()
	<-left
	eventually(t, "the worker takes up the abandoned request", func() bool { return service.Counts().Worked == 2 })
}

func TestServiceAnswersAsItsDatabaseDoes(t *testing.T) {
	service, database := start(t, drill.ServiceConfig{Workers: 1, Queue: 1, DatabaseTimeout: 10 * time.Millisecond})
	if status := post(t.Context(), service.URL()); status != http.StatusOK {
		t.Errorf("status %d with a database that is well, want 200", status)
	}
	database.Break()
	if status := post(t.Context(), service.URL()); status != http.StatusGatewayTimeout {
		t.Errorf("status %d in the outage, want 504", status)
	}
	database.Mend()
	if status := post(t.Context(), service.URL()); status != http.StatusOK {
		t.Errorf("status %d after the outage, want 200", status)
	}
}
