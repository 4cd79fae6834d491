package page

import (
	"net/http"
	"strconv"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
)

func (p *Page) desk(w http.ResponseWriter, _ *http.Request) error {
	d := p.config.Desk
	writeJSON(w, http.StatusOK, map[string]any{
		"topic": d.Topic(), "audit": d.Audit(), "retentionSeconds": d.Retention().Seconds(),
		"hideValues": p.config.HideValues, "help": dlq.ExpressionHelp, "now": time.Now(),
	})
	return nil
}

func (p *Page) groups(w http.ResponseWriter, r *http.Request) error {
	f, err := p.filterOf(r.URL.Query())
	if err != nil {
		return err
	}
	done, err := p.scan(r.Context())
	if err != nil {
		return err
	}
	defer done()
	groups, err := p.config.Desk.Groups(r.Context(), f)
	if err != nil {
		return err
	}
	if groups == nil {
		groups = []dlq.Group{}
	}
	writeJSON(w, http.StatusOK, map[string]any{"groups": groups})
	return nil
}

func (p *Page) letters(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	f, err := p.filterOf(q, "limit", "after")
	if err != nil {
		return err
	}
	list := &newest{max: 50, show: p.summary}
	if list.max, err = limitOf(q.Get("limit"), list.max); err != nil {
		return err
	}
	if after := q.Get("after"); after != "" {
		if list.after, err = parseCursor(after); err != nil {
			return err
		}
	}
	done, err := p.scan(r.Context())
	if err != nil {
		return err
	}
	defer done()
	if err := p.config.Desk.Each(r.Context(), f, func(e *dlq.Entry) bool { list.offer(e); return true }); err != nil {
		return err
	}
	found, next := list.taken()
	writeJSON(w, http.StatusOK, struct {
		Letters []summary `json:"letters"`
		Count   int       `json:"count"`
		Next    string    `json:"next,omitempty"`
	}{found, list.count, next})
	return nil
}

func limitOf(text string, otherwise int) (int, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 500 {
		return 0, refuse(http.StatusBadRequest, "limit is a number from 1 to 500")
	}
	return n, nil
}

// export answers with JSON lines.
func (p *Page) export(w http.ResponseWriter, r *http.Request) error {
	if p.config.HideValues {
		return refuse(http.StatusForbidden, "values are hidden here, so nothing is exported")
	}
	f, err := p.filterOf(r.URL.Query())
	if err != nil {
		return err
	}
	done, err := p.scan(r.Context())
	if err != nil {
		return err
	}
	defer done()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="dead-letters.jsonl"`)
	if _, err := p.config.Desk.Export(r.Context(), f, w); err != nil {
		p.config.Logger.Error("dlq page: export", "error", err)
		panic(http.ErrAbortHandler) // the answer has begun: only a connection that breaks tells that it is not whole
	}
	return nil
}

// actions answers with a page of the audit, the newest first.
func (p *Page) actions(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	limit, err := limitOf(q.Get("limit"), 100)
	if err != nil {
		return err
	}
	before := int64(-1)
	if text := q.Get("before"); text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 0 {
			return refuse(http.StatusBadRequest, "before is not the next of an answer: %q", cut(text, 60))
		}
	}
	each, ring, n := q.Get("each") != "", make([]actionReport, limit), 0
	err = p.config.Desk.Actions(r.Context(), func(a *dlq.Action) bool {
		if before >= 0 && a.Offset >= before {
			return false
		}
		if a.Kind == dlq.ReplayAlive { // every ten seconds one, and nobody's doing
			return true
		}
		if last := &ring[(n+limit-1)%limit]; !each && n > 0 && last.alike(a) {
			last.Count, last.Time, last.To = max(last.Count, 1)+1, a.Time, ""
			return true
		}
		ring[n%limit] = actionReport{a.Offset, *a}
		n++
		return true
	})
	if err != nil {
		return err
	}
	answer := struct {
		Actions []actionReport `json:"actions"`
		Next    string         `json:"next,omitempty"`
	}{Actions: []actionReport{}}
	for i := n - 1; i >= max(n-limit, 0); i-- {
		answer.Actions = append(answer.Actions, ring[i%limit])
	}
	if n > limit {
		answer.Next = strconv.FormatInt(ring[n%limit].Offset, 10)
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// actionReport is an audit record and where it stands, or several about one letter each that somebody did at once:
// Count says how many.
type actionReport struct {
	Offset int64 `json:"offset"`
	dlq.Action
}

// alike reports whether a is of the same doing.
func (r *actionReport) alike(a *dlq.Action) bool {
	return r.Place != "" && a.Place != "" && r.ID != "" && r.ID == a.ID && r.Kind == a.Kind && r.By == a.By
}
