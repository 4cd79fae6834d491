package abateadmin

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

// maxBody is the size of a request that changes something, in bytes.
const maxBody = 4 << 10

// maxActs is how many changes are remembered.
const maxActs = 20

// order is the body of POST /override.
type order struct {
	Guard    string          `json:"guard"`
	Override *abate.Override `json:"override"`
}

// parseOrder reads one, and nothing else.
func parseOrder(body io.Reader) (o order, err error) {
	in := json.NewDecoder(body)
	in.DisallowUnknownFields()
	if err := in.Decode(&o); err != nil {
		return o, refuse(http.StatusBadRequest, `the body is not understood (%s): write for example {"guard": "checkout", `+
			`"override": "forcedOpen"}`, cut(err.Error(), maxText))
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return o, refuse(http.StatusBadRequest, "there is something behind the JSON object: send one object")
	}
	if o.Guard == "" || o.Override == nil {
		return o, refuse(http.StatusBadRequest, `"guard" and "override" are both needed; an override of "" takes one back`)
	}
	return o, nil
}

// override is POST /override: for every guard with that name.
func (p *Page) override(w http.ResponseWriter, r *http.Request) error {
	o, err := parseOrder(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return err
	}
	n, ok := p.find(o.Guard, false)
	if !ok {
		return refuse(http.StatusNotFound, "there is no guard %q", cut(o.Guard, maxText))
	}
	who := p.who(r)
	for _, g := range n.guards {
		if err := g.Override(*o.Override); err != nil {
			return refuse(http.StatusBadRequest, "%s", strings.TrimPrefix(err.Error(), "abate: "))
		}
	}
	n.record.doneBy(core.Now(), who)
	text := o.Guard + ": circuit breaker left to the policy again"
	switch *o.Override {
	case abate.OverrideForcedOpen:
		text = o.Guard + ": circuit forced open"
	case abate.OverrideDisabled:
		text = o.Guard + ": circuit breaker disabled"
	case abate.OverrideShadow:
		text = o.Guard + ": circuit breaker in shadow"
	}
	p.done(r, Act{Who: who, Text: text})
	writeJSON(w, http.StatusOK, map[string]string{"done": text})
	return nil
}

// reload is POST /reload.
func (p *Page) reload(w http.ResponseWriter, r *http.Request) error {
	if p.config.Reload == nil {
		return refuse(http.StatusNotFound, "there is no policy file to load")
	}
	act := Act{Who: p.who(r), Text: "policy file loaded"}
	err := p.config.Reload()
	if err != nil {
		act.Text, act.Problem = "policy file not loaded: the last good policy stays in force", err.Error()
	}
	p.done(r, act)
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "%s", err)
	}
	writeJSON(w, http.StatusOK, map[string]string{"done": act.Text})
	return nil
}

func (p *Page) who(r *http.Request) string {
	if p.config.Who == nil {
		return ""
	}
	return cut(p.config.Who(r), maxText)
}

// done logs and shows what was done.
func (p *Page) done(r *http.Request, a Act) {
	a.At = p.wall(core.Now())
	log := []any{"done", a.Text, "by", a.Who, "from", r.RemoteAddr}
	if a.Problem == "" {
		p.config.Log.Warn("changed from the admin page", log...)
	} else {
		p.config.Log.Error("not changed from the admin page", append(log, "error", a.Problem)...)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acts = append(p.acts, a)
	p.acts = p.acts[max(len(p.acts)-maxActs, 0):]
}
