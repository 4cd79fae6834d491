package cli_test

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/cmd/internal/cli"
)

func TestAllThatIsWrongWithFlagsIsReported(t *testing.T) {
	for _, tt := range []struct {
		args  string
		words []string
		wrong []string
		help  bool
	}{
		{"a -rate 2 b --json --wait=3s", []string{"a", "b"}, nil, false},
		{"- --json a", []string{"-", "a"}, nil, false},
		{"--rate 2 -- --rate fast", []string{"--rate", "fast"}, nil, false},
		{"--rte 3 --json=maybe --rate fast x", []string{"x"}, []string{
			"--rte is not a flag", `--json: "maybe" is neither true nor false`, `--rate: "fast" is not a number`}, false},
		{"-rte=3 --colour a.yaml --wait soon --rate", []string{"a.yaml"}, []string{"-rte is not a flag",
			"--colour is not a flag",
			`--wait: "soon" is not a length of time: write for example 500ms or 5s`, "--rate needs a value"}, false},
		{"--own 1 --rate --", nil, []string{`--own: "1" is odd`, "--rate needs a value"}, false},
		{"--rte --help", nil, []string{"--rte is not a flag"}, true},
	} {
		set := flag.NewFlagSet("x", flag.ContinueOnError)
		rate, wait := set.Float64("rate", 2, ""), set.Duration("wait", 3*time.Second, "")
		set.Bool("json", false, "")
		set.Func("own", "", func(s string) error { return fmt.Errorf("%q is odd", s) })
		var wrong []string
		words, err := cli.ReadFlags(set, strings.Fields(tt.args), func(format string, args ...any) {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		})
		if !slices.Equal(words, tt.words) || !slices.Equal(wrong, tt.wrong) || errors.Is(err, flag.ErrHelp) != tt.help {
			t.Errorf("%s: words %q, wrong %q, %v", tt.args, words, wrong, err)
		}
		if *rate != 2 || *wait != 3*time.Second {
			t.Errorf("%s: a wrong value left %v and %v behind", tt.args, *rate, *wait)
		}
	}
}
