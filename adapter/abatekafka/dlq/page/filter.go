package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
)

// maxBody is how large a body may be, in bytes.
const maxBody = 64 << 10

// filterKeys are what a query may say about which letters are meant.
var filterKeys = []string{"group", "state", "from", "to", "partition", "fromOffset", "toOffset", "where"}

// filterOf reads a filter from a query. more are other keys that the query may have.
func (p *Page) filterOf(q url.Values, more ...string) (dlq.Filter, error) {
	f := dlq.All()
	var wrong []error
	number := func(key string, bits int) int64 {
		n, err := strconv.ParseInt(q.Get(key), 10, bits)
		if err != nil {
			wrong = append(wrong, errors.New(key+" is not a number: "+cut(q.Get(key), 40)))
		}
		return n
	}
	for key := range q {
		switch value := q.Get(key); {
		case value == "" || slices.Contains(more, key):
		case key == "group":
			f.Group = value
		case key == "state":
			f.State = dlq.State(value)
		case key == "where":
			f.Where = value
		case key == "partition":
			f.Partition = int32(number(key, 32))
		case key == "fromOffset":
			f.FromOffset = number(key, 64)
		case key == "toOffset":
			f.ToOffset = number(key, 64)
		case key == "from" || key == "to":
			at, err := time.Parse(time.RFC3339, value)
			if err != nil {
				wrong = append(wrong, errors.New(key+" is not a time: write it like 2026-01-31T14:00:00Z"))
			}
			if key == "from" {
				f.From = at
			} else {
				f.To = at
			}
		default:
			wrong = append(
				wrong, errors.New("there is no "+cut(key, 40)+" to ask by, but: "+strings.Join(append(filterKeys, more...), ", ")))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return f, refuse(http.StatusBadRequest, "%v", err)
	}
	return f, p.check(f)
}

// check refuses a filter that means nothing, or that asks for what is hidden.
func (p *Page) check(f dlq.Filter) error {
	if f.State != "" && f.State != dlq.Any && !slices.Contains(dlq.States, f.State) {
		return refuse(http.StatusBadRequest, "there is no state %q: write waiting, replayed, deleted or any",
			cut(string(f.State), 40))
	}
	if f.Partition < -1 || f.FromOffset < 0 || f.ToOffset < 0 {
		return refuse(http.StatusBadRequest, "partition is -1 for all or a number from 0, offsets are numbers from 0")
	}
	if f.Where == "" {
		return nil
	}
	x, err := dlq.ParseExpression(f.Where)
	if err != nil {
		return refuse(http.StatusBadRequest, "%v", err)
	}
	for _, field := range []string{"key", "value", "header", "json"} {
		if p.config.HideValues && x.Uses(field) {
			return refuse(http.StatusForbidden, "values are hidden here: a condition may not ask about %s", field)
		}
	}
	return nil
}

// ask is the body of a POST. Each request uses some of it.
type ask struct {
	Filter        json.RawMessage `json:"filter"`
	To            string          `json:"to"`
	Rate          float64         `json:"rate"`
	SettleSeconds float64         `json:"settleSeconds"`
	Reader        string          `json:"reader"`
	Unjudged      bool            `json:"unjudged"`
	MaxFailures   *float64        `json:"maxFailures"`
	MaxReplays    int             `json:"maxReplays"`
	Resume        string          `json:"resume"`
	TakeOver      bool            `json:"takeOver"`
	ID            string          `json:"id"`
	Group         string          `json:"group"`
	Text          string          `json:"text"`
}

// read reads a body. Keys that are unknown are refused: a word that is misspelt must not choose all letters.
func (p *Page) read(w http.ResponseWriter, r *http.Request) (a ask, f dlq.Filter, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return a, f, refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes, or was cut off", maxBody)
	}
	f = dlq.All()
	if err = strict(body, &a); err == nil && a.Filter != nil {
		err = strict(a.Filter, &f)
	}
	if err != nil {
		return a, f, refuse(http.StatusBadRequest, "the body is not what this request takes: %v", err)
	}
	return a, f, p.check(f)
}

func strict(body []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is more behind it")
	}
	return nil
}
