package redelivery_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/abate-go/abate/policy/redelivery"
)

// matches asks a plan whether a class is like a pattern: it shows no other way.
func matches(pattern, class string) bool {
	p := redelivery.NewPlan(redelivery.Config{Delay: time.Second, NeverRetryErrors: []string{pattern}})
	return p.Next(redelivery.Failure{Delivery: 1, Class: class}).Reason == "never-retry"
}

func TestAStarInAPatternStandsForAnything(t *testing.T) {
	for _, row := range []struct {
		pattern, class string
		want           bool
	}{
		{"*json.SyntaxError", "*json.SyntaxError", true}, {"*json.SyntaxError", "json.SyntaxError", true},
		{"*json.SyntaxError", "json.SyntaxErrors", false},
		{"card-declined", "card-declined", true}, {"card-declined", "Card-Declined", false}, {"*", "", true},
		{"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXcYb", false},
		{"*Timeout*", "*net.TimeoutError", true}, {"a", "", false}, {"**", "x", true}, {"a*", "a", true}, {"a*a", "a", false},
	} {
		if got := matches(row.pattern, row.class); got != row.want {
			t.Errorf("%q matches %q: %v", row.pattern, row.class, got)
		}
	}
}

func FuzzPatternsMatchAsARegularExpressionDoes(f *testing.F) {
	f.Add("a*b*", "aab")
	f.Add("***a", "bba")
	f.Fuzz(func(t *testing.T, pattern, class string) {
		if len(pattern) > 20 || len(class) > 100 || pattern == "" || !utf8.ValidString(pattern) || !utf8.ValidString(class) {
			return
		}
		re := regexp.MustCompile(`(?s)^` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `$`)
		if got := matches(pattern, class); got != re.MatchString(class) {
			t.Errorf("%q matches %q: %v", pattern, class, got)
		}
	})
}
