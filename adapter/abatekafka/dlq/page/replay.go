package page

import (
	"context"
	"net/http"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

// maxSample is how many letters a dry run shows.
const maxSample = 20

// wanted makes a replay of what the form says.
func (p *Page) wanted(w http.ResponseWriter, r *http.Request) (dlq.Replay, error) {
	a, f, err := p.read(w, r)
	if err != nil {
		return dlq.Replay{}, err
	}
	failures := 0.0 // the default
	if a.MaxFailures != nil {
		if failures = *a.MaxFailures; failures == 0 {
			failures = -1 // none at all
		}
	}
	switch {
	case a.Rate < 0 || a.Rate > 1e6 || a.SettleSeconds < 0 || a.SettleSeconds > 86400 || a.MaxReplays < 0:
		return dlq.Replay{}, refuse(http.StatusBadRequest,
			"rate is a number to 1000000, settleSeconds one to 86400, maxReplays one from 1; 0 means the default")
	case failures > 1 || failures < 0 && failures != -1:
		return dlq.Replay{}, refuse(http.StatusBadRequest, "maxFailures is a share from 0 to 1")
	case a.Resume == "" && a.Filter == nil:
		return dlq.Replay{}, refuse(http.StatusBadRequest, "filter is missing: say which letters, {} for all that wait")
	case a.To != "" && p.config.HideValues:
		return dlq.Replay{},
			refuse(http.StatusForbidden, "values are hidden here, so letters go to their original topic only")
	}
	return dlq.Replay{
		Filter: f, To: a.To, Rate: a.Rate, Settle: time.Duration(a.SettleSeconds * float64(time.Second)),
		MaxFailures: failures, MaxReplays: a.MaxReplays,
		Reader: a.Reader, Unjudged: a.Unjudged, Resume: a.Resume, TakeOver: a.TakeOver, Guard: p.config.Replay.Guard,
		Watch: p.config.Replay.Watch,
	}, nil
}

// sampled is one letter of a dry run.
type sampled struct {
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Key       string `json:"key"`
	Class     string `json:"class"`
	To        string `json:"to,omitempty"`
	Skip      string `json:"skip,omitempty"`
}

// plan answers with what a replay would do.
func (p *Page) plan(w http.ResponseWriter, r *http.Request) error {
	replay, err := p.wanted(w, r)
	if err != nil {
		return err
	}
	done, err := p.scan(r.Context())
	if err != nil {
		return err
	}
	defer done()
	sample, targets := []sampled{}, map[string]int{}
	replay.DryRun = true
	replay.Report = func(e *dlq.Entry, to, skip string) {
		if skip == "" {
			targets[to]++
		}
		if len(sample) < maxSample {
			sample = append(sample, sampled{
				e.At.Partition, e.At.Offset, p.line(e.Letter.Key, 80), letter.Cut(e.Letter.Class, letter.MaxClass), to, skip,
			})
		}
	}
	progress, err := p.config.Desk.Replay(r.Context(), replay)
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "%v", err)
	}
	writeJSON(w, http.StatusOK, map[string]any{"progress": progress, "targets": targets, "sample": sample})
	return nil
}

func (p *Page) replay(w http.ResponseWriter, r *http.Request) error {
	replay, err := p.wanted(w, r)
	if err != nil {
		return err
	}
	err = p.job.start(r.Context(), func(ctx context.Context, tell func(dlq.Progress)) (dlq.Progress, error) {
		replay.Progress = tell
		progress, err := p.config.Desk.Replay(ctx, replay)
		p.config.Logger.Info("dlq page: replay ended", "topic", p.config.Desk.Topic(), "id", progress.ID, "phase",
			string(progress.Phase), "sent", progress.Sent,
			"back", progress.Back, "why", progress.Why, "error", err)
		return progress, err
	})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, map[string]bool{"started": true})
	return nil
}

// cancel stops a replay, here or elsewhere.
func (p *Page) cancel(w http.ResponseWriter, r *http.Request) error {
	a, _, err := p.read(w, r)
	if err != nil {
		return err
	}
	if !p.job.end(a.ID) {
		if a.ID == "" {
			return refuse(http.StatusConflict, "no replay runs here: say which, by its id")
		}
		if err := p.config.Desk.Cancel(r.Context(), a.ID); err != nil {
			return refuse(http.StatusConflict, "%v", err)
		}
	}
	writeJSON(w, http.StatusAccepted, map[string]bool{"cancelled": true})
	return nil
}

// replays answers with the replay of this process and all that the audit knows.
func (p *Page) replays(w http.ResponseWriter, r *http.Request) error {
	type here struct {
		dlq.Progress
		Running bool   `json:"running"`
		Failure string `json:"failure,omitempty"`
	}
	answer := struct {
		Here *here          `json:"here"`
		All  []dlq.Progress `json:"all,omitempty"`
	}{}
	if progress, failure, running, there := p.job.read(); there {
		answer.Here = &here{progress, running, failure}
	}
	if r.URL.Query().Get("all") != "0" {
		all, err := p.config.Desk.Replays(r.Context())
		if err != nil {
			return err
		}
		answer.All = all
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}
