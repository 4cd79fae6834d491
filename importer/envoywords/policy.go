package envoywords

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// Policy is a retry policy in Envoy's words, whichever format says it.
type Policy struct {
	Product string        // what reads the words, for sentences: "Istio"
	Subject string        // what remarks are about
	Words   []source.Part // of retry_on
	Codes   []source.Part // status codes that are repeated where the words have retriable-status-codes
	Tries   topology.Value[int]
	Methods topology.Methods // the zero value is all
	Listed  []string         // the methods themselves, where the policy lists them
	// Elsewhere reports that endpoints that were tried are avoided.
	Elsewhere bool
	// Hedged reports that a try that has had its time is repeated whatever the words say.
	Hedged bool
}

// Repeats returns what the policy repeats, one rule for each word, and a remark for each word that has no effect.
func (p Policy) Repeats() ([]topology.Repeat, []topology.Remark) {
	var repeats []topology.Repeat
	var remarks []topology.Remark
	byCode := false
	for _, word := range p.Words {
		on, known := meanings[word.Text]
		byCode = byCode || word.Text == codesWord
		switch {
		case source.Template(word.Text) != "":
			repeats = append(repeats, p.unknown(topology.AllOutcomes(), "template "+word.Text, word))
		case !known:
			remarks = append(remarks, p.remark(word, fmt.Sprintf("%s knows no condition %q, so it repeats nothing",
				p.Product, word.Text), source.Meant(word.Text, Known())))
		case word.Text == headersWord:
			repeats = append(repeats, p.unknown(statuses, "it depends on the headers of the answer", word))
		case word.Text == limitedWord:
			repeats = append(repeats, p.unknown(on, "only an answer with x-envoy-ratelimited is repeated", word))
		case word.Text == http3Word:
			repeats = append(repeats, p.unknown(on, "only a connection of HTTP/3 that breaks is repeated", word))
		case word.Text == codesWord && len(p.Codes) == 0:
			remarks = append(remarks, p.remark(word, codesWord+" repeats nothing, because no status codes are listed",
				"list them, or leave the word out"))
		case len(on) > 0:
			repeats = append(repeats, p.repeat(on, word))
		}
	}
	coded, more := p.codes(byCode)
	repeats, remarks = append(repeats, coded...), append(remarks, more...)
	if p.Hedged && len(repeats) > 0 {
		hang := p.repeat([]topology.Outcome{topology.Hang}, p.Words[0])
		hang.Methods, hang.Listed = 0, nil // Envoy does not ask which methods are to be repeated
		repeats = append(repeats, hang)
	}
	return repeats, remarks
}

func (p Policy) codes(named bool) (repeats []topology.Repeat, remarks []topology.Remark) {
	if !named {
		if len(p.Codes) > 0 && len(p.Words) > 0 {
			remarks = append(remarks, p.remark(p.Codes[0],
				"these status codes are not repeated, because the conditions lack "+codesWord, "add "+codesWord))
		}
		return nil, remarks
	}
	for _, code := range p.Codes {
		n, err := strconv.Atoi(code.Text)
		on, failure := Status(n)
		switch {
		case source.Template(code.Text) != "":
			repeats = append(repeats, p.unknown(statuses, "template "+code.Text, code))
		case err != nil || !failure:
			remarks = append(remarks, p.remark(code, fmt.Sprintf("%q is no status code of a failure", code.Text),
				"write one from 400 to 599"))
		default:
			repeats = append(repeats, p.repeat([]topology.Outcome{on}, code))
		}
	}
	return repeats, remarks
}

func (p Policy) repeat(on []topology.Outcome, word source.Part) topology.Repeat {
	return topology.Repeat{On: slices.Clone(on), Methods: p.Methods, Listed: p.Listed, Tries: p.Tries, Word: word.Text,
		At: word.At, Elsewhere: p.Elsewhere}
}

func (p Policy) unknown(on []topology.Outcome, why string, word source.Part) topology.Repeat {
	r := p.repeat(on, word)
	r.Tries = topology.NotKnown[int](why, word.At)
	return r
}

func (p Policy) remark(word source.Part, text, fix string) topology.Remark {
	return topology.Remark{Rule: "F601", At: word.At, Subject: strings.TrimSpace(p.Subject + " " + word.Text), Text: text,
		Fix: fix}
}

// Off returns the rule of a policy that repeats nothing, so that the form says who decided that: every outcome has one
// try.
func Off(one topology.Value[int], word string, at topology.Position) topology.Repeat {
	return topology.Repeat{On: topology.AllOutcomes(), Tries: one, Word: word, At: at}
}

// PlusOne turns a number of retries into one of tries.
func PlusOne(retries topology.Value[int]) topology.Value[int] {
	if _, ok := retries.Get(); ok && retries.V < topology.Unbounded-1 {
		retries.V++
	}
	return retries
}
