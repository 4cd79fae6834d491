package strictyaml_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/internal/strictyaml"
)

// plant is a file with a field of every kind.
type plant struct {
	// Title names the plant.
	Title string `yaml:"title" example:"north"`
	// Runs is how often it is tried.
	Runs int `yaml:"runs" range:"1..1000" example:"100"`
	// Seed starts the random numbers.
	Seed uint64 `yaml:"seed"`
	// Offset moves them.
	Offset int64 `yaml:"offset"`
	// Share is a part of the whole.
	Share float64 `yaml:"share" range:"0..1" percent:"true" example:"30%"`
	// Factor multiplies.
	Factor float64 `yaml:"factor" range:"1..10"`
	// Wait has no limits of its own.
	Wait time.Duration `yaml:"wait" example:"5s"`
	// Skew may be negative.
	Skew time.Duration `yaml:"skew" range:"-1m..1m" example:"-10ms"`
	// Fast is quick.
	Fast bool `yaml:"fast"`
	// Mode is one of a few.
	Mode string `yaml:"mode" enum:"open|closed"`
	// Tags are words.
	Tags []string `yaml:"tags"`
	// Marks are times.
	Marks []time.Duration `yaml:"marks" range:"0s..1h" example:"[1s, 2s]"`
	// Expect must hold.
	Expect []claim `yaml:"expect" example:"[\"recovery < 10s\"]"`
	// First must hold, too.
	First claim `yaml:"first"`
	// Faults happen.
	Faults []fault `yaml:"faults"`
	// Services are called.
	Services []service `yaml:"services" keyed:"true"`
	// Policy is a file in the file.
	Policy yaml.Node `yaml:"policy"`
	// Variants change the rest.
	Variants []variant `yaml:"variants" keyed:"true"`
	// Limits hold for all.
	Limits limits `yaml:"limits"`
}

type service struct {
	// Name is the key.
	Name string `yaml:"-"`
	// Workers serve.
	Workers int `yaml:"workers" range:"1..100" example:"8"`
	// Queue waits.
	Queue queue `yaml:"queue"`
	// Calls go out.
	Calls []call `yaml:"calls"`
	// Steps are named.
	Steps []step `yaml:"steps" keyed:"true"`
}

type queue struct {
	// Limit is its length.
	Limit int `yaml:"limit" range:"0..1000"`
	// Order is who is next.
	Order string `yaml:"order" enum:"fifo|lifo"`
}

type call struct {
	// To is the service.
	To string `yaml:"to" short:"true"`
	// Optional calls may fail.
	Optional bool `yaml:"optional"`
}

type step struct {
	// Name is the key.
	Name string `yaml:"-"`
	// Cost is its work.
	Cost int `yaml:"cost"`
}

type fault struct {
	// At is when.
	At time.Duration `yaml:"at"`
	// Kind is what.
	Kind string `yaml:"kind" enum:"slow|down"`
}

type variant struct {
	// Name is the key.
	Name string `yaml:"-"`
	// Services are overlaid.
	Services *yaml.Node `yaml:"services"`
	// Limits are overlaid.
	Limits *yaml.Node `yaml:"limits"`
}

type limits struct {
	// Depth is how deep.
	Depth int `yaml:"depth"`
	// Width is how wide.
	Width int `yaml:"width"`
}

// claim is text that reads itself and knows how to fix it.
type claim struct{ text string }

type claimError struct{ problem, fix string }

func (e *claimError) Error() string { return e.problem }
func (e *claimError) Fix() string   { return e.fix }

var errPlain = errors.New("is plainly\nwrong")

func (c *claim) UnmarshalText(text []byte) error {
	if c.text = string(text); c.text == "plain" {
		return errPlain
	}
	if !strings.ContainsAny(c.text, "<>") {
		return &claimError{problem: strictyaml.Quote(c.text) + " compares nothing", fix: "write < or >"}
	}
	return nil
}

func (c claim) MarshalText() ([]byte, error) { return []byte(c.text), nil }

var form = strictyaml.Form{Noun: "plant", Least: "it needs a title; for example title: north", Key: "title"}

func decode(t testing.TB, text string) (plant, *strictyaml.Positions) {
	t.Helper()
	var p plant
	at, errs := form.Decode("p.yaml", []byte(text), &p)
	if len(errs) > 0 {
		t.Fatalf("%v\n%s", errs, text)
	}
	return p, at
}

// complaints is what is wrong with a file, one per line, without the name of the file.
func complaints(errs strictyaml.Errors) string {
	lines := make([]string, len(errs))
	for i, e := range errs {
		lines[i] = strings.TrimPrefix(e.Error(), "p.yaml:")
	}
	return strings.Join(lines, "\n")
}
