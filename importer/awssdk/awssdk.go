// Package awssdk reads how often the SDKs of AWS try: AWS_RETRY_MODE and AWS_MAX_ATTEMPTS in the environment of
// programs (workloads of Kubernetes, compose files, task definitions of ECS, functions in templates of SAM and
// CloudFormation, in serverless.yml and in Terraform), files of variables (.env), and the profiles of the file
// ~/.aws/config. What a program sets for a client in its code it does not see.
package awssdk

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// who is whose defaults hold. The SDKs have agreed on the mode "standard".
const who = "AWS SDKs in mode standard"

const (
	attemptsVariable = "AWS_MAX_ATTEMPTS"
	modeVariable     = "AWS_RETRY_MODE"
	// callee stands for all services of AWS: the settings are for all of them.
	callee = "aws"
)

var profile = regexp.MustCompile(`(?m)^\[(?:default|profile [^\]\n]+)\][ \t]*\r?$`)

var setting = regexp.MustCompile(`(?m)^[ \t]*(?:max_attempts|retry_mode)[ \t]*=`)

// Recognise reports whether a document has such settings: a workload whose environment has one of the variables, a file
// of variables that has, or a file with profiles. A compose file that names files of variables has them if those do,
// and may be Silent.
func Recognise(d source.Document) bool {
	if d.Root.Exists() {
		return len(clients(&d, nil)) > 0 || namesFiles(d.Root)
	}
	return !d.Prose() && profile.Match(d.Data) && setting.Match(d.Data) || isEnvironment(&d)
}

// Silent returns the files of documents that were recognised and say nothing: compose files whose files of variables
// have none of those that are read.
func Silent(docs []source.Document) map[string]bool {
	trees, files := split(docs)
	byPath, _ := given(trees, files)
	silent := map[string]bool{}
	for _, d := range trees {
		silent[d.File] = true
	}
	for _, d := range trees {
		if len(clients(d, byPath)) > 0 {
			silent[d.File] = false
		}
	}
	for _, d := range files {
		silent[d.File] = false
	}
	return silent
}

// split returns the documents that are trees, and the files of variables.
func split(docs []source.Document) (trees, files []*source.Document) {
	for i := range docs {
		if d := &docs[i]; d.Root.Exists() {
			trees = append(trees, d)
		} else if isEnvironment(d) {
			files = append(files, d)
		}
	}
	return trees, files
}

// Read returns the calls of AWS that the documents set something for.
func Read(docs []source.Document, _ source.Assume) topology.Form {
	var r reader
	for i := range docs {
		if d := &docs[i]; !d.Root.Exists() && !isEnvironment(d) {
			r.profiles(d)
		}
	}
	trees, files := split(docs)
	byPath, others := given(trees, files)
	for _, d := range trees {
		for _, c := range clients(d, byPath) {
			r.add(c.service, "environment of "+c.service, c)
		}
	}
	r.variables(others)
	return r.form
}

type reader struct{ form topology.Form }

// client is what one program, or one profile, says.
type client struct {
	service        string
	attempts, mode source.Part
}

// profiles reads a file of profiles. Which is used no file says; default is when nobody says another.
func (r *reader) profiles(d *source.Document) {
	name, c := "", client{}
	flush := func() { r.add(d.Service("aws-client"), "profile "+name, c) }
	for i, line := range strings.Split(string(d.Data), "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			flush()
			name, c = strings.Trim(strings.TrimPrefix(line, "[profile "), "[]"), client{}
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		part := source.Part{Text: strings.TrimSpace(value), At: d.At(i+1, 1)}
		switch strings.TrimSpace(key) {
		case "max_attempts":
			c.attempts = part
		case "retry_mode":
			c.mode = part
		}
	}
	flush()
}

// modes are the words of a retry mode.
var modes = []string{"standard", "adaptive", "legacy"}

// add makes the call of one program. Of several ways in which it may be set it goes one.
func (r *reader) add(from, name string, ways ...client) {
	ways = slices.DeleteFunc(ways, func(c client) bool { return c.attempts.Text == "" && c.mode.Text == "" })
	if len(ways) == 0 {
		return
	}
	var layers []topology.Layer
	for _, c := range ways {
		l := r.layer(name, c)
		if len(ways) > 1 {
			l.Choice = name
		}
		layers = append(layers, l)
	}
	r.form.Calls = append(r.form.Calls, topology.Call{From: from, To: callee, At: layers[0].At, Layers: layers,
		PerRequest: topology.Assume(1.0, "the environment sets how its AWS SDK tries")})
}

// layer is the SDK as it is set.
func (r *reader) layer(name string, c client) topology.Layer {
	at := c.attempts.At
	if c.attempts.Text == "" {
		at = c.mode.At
	}
	l := topology.Layer{Kind: topology.Client, Product: "aws-sdk", Name: "AWS SDK, " + name, At: at,
		PerTry: topology.NotKnown[time.Duration]("the time limits of the SDK are in code", at)}
	mode := strings.ToLower(c.mode.Text)
	if mode != "" && source.Template(c.mode.Text) == "" && !slices.Contains(modes, mode) {
		r.remark("F601", c.mode, name+" retry mode", "AWS SDKs know no retry mode "+c.mode.Text, source.Meant(mode, modes))
	}
	tries := topology.DefaultOf(3, who, at)
	switch {
	case c.attempts.Text != "":
		v, remarks := source.Word(c.attempts.Text, c.attempts.At, source.Int)
		r.form.Remarks = append(r.form.Remarks, remarks...)
		if n, ok := v.Get(); ok && n == 0 {
			r.remark("F604", c.attempts, name+" attempts", "a number of attempts of 0 is refused by some SDKs, and means any "+
				"number to others", "write 1 for no retries")
			v = topology.NotKnown[int]("0 attempts differ between SDKs", c.attempts.At)
		}
		tries = v
	case mode == "legacy":
		tries = topology.NotKnown[int]("in mode legacy each SDK has its own number", at)
	case source.Template(c.mode.Text) != "":
		tries = topology.NotKnown[int]("template "+c.mode.Text, at)
	}
	l.Repeats = []topology.Repeat{{On: []topology.Outcome{topology.Refused, topology.ResetUnsent, topology.ResetSent,
		topology.Hang, topology.S500, topology.S502, topology.S503, topology.S504, topology.S429},
		Methods: topology.AllMethods, Tries: tries, Word: "retry", At: at}}
	l.Backoff = topology.Backoff{First: topology.DefaultOf(time.Second, who, at),
		Max: topology.DefaultOf(20*time.Second, who, at), Multiplier: topology.DefaultOf(2.0, who, at),
		Jitter: topology.DefaultOf("full", who, at)}
	return l
}

func (r *reader) remark(rule string, p source.Part, subject, text, fix string) {
	r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: rule, At: p.At, Subject: subject, Text: text, Fix: fix})
}
