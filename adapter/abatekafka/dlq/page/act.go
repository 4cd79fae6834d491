package page

import (
	"net/http"
	"strings"
	"unicode/utf8"
)

// maxNote is how long a note may be, in characters.
const maxNote = 2000

func (p *Page) delete(w http.ResponseWriter, r *http.Request) error {
	return p.change(w, r, false)
}

func (p *Page) restore(w http.ResponseWriter, r *http.Request) error {
	return p.change(w, r, true)
}

func (p *Page) change(w http.ResponseWriter, r *http.Request, restore bool) error {
	a, f, err := p.read(w, r)
	if err != nil {
		return err
	}
	if a.Filter == nil {
		return refuse(http.StatusBadRequest, "filter is missing: say which letters, {} for all that wait")
	}
	done, err := p.scan(r.Context())
	if err != nil {
		return err
	}
	defer done()
	do, what := p.config.Desk.Delete, "deleted"
	if restore {
		do, what = p.config.Desk.Restore, "restored"
	}
	n, err := do(r.Context(), f)
	if err != nil {
		return err
	}
	p.config.Logger.Info("dlq page: letters "+what, "count", n, "topic", p.config.Desk.Topic())
	writeJSON(w, http.StatusOK, map[string]int{"count": n})
	return nil
}

func (p *Page) note(w http.ResponseWriter, r *http.Request) error {
	a, _, err := p.read(w, r)
	if err != nil {
		return err
	}
	text := strings.TrimSpace(a.Text)
	if a.Group == "" || utf8.RuneCountInString(text) > maxNote {
		return refuse(http.StatusBadRequest, "a note needs a group, and may have %d characters", maxNote)
	}
	if err := p.config.Desk.Note(r.Context(), a.Group, text); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]string{"note": text})
	return nil
}
