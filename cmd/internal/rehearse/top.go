package rehearse

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/cmd/internal/cli"
)

const topUsage = `Usage: abate top [FLAGS]

Shows what the guards and gates of a running program do, those in trouble first, once a second. The
program is "abate proxy", "abate drill", or yours with abateadmin.Page; in a browser the same
address shows more.

  --admin URL        where its admin page is (default http://127.0.0.1:15000)
  --token-file FILE  a file with a token for it: alone, or behind a name as in --admin-token-file
  --ca FILE          the authorities that vouch for its certificate, if the system does not know them
  --cert FILE        a client certificate, and
  --key FILE         its key, where the page asks for one
  --once             print one table and end, as when the output is no terminal
  -h, --help         print this

Keys: j and k or the arrows move, Enter shows why, Esc goes back, s sorts by something else,
q ends. NO_COLOR in the environment switches colours off.

Columns: AMP is attempts for each call, rates are per second over the last ten, RETRY is the share
of retries and hedges among attempts, BUDGET how many of them could be sent now.

Exit code: 0 shown, 1 nothing answered, 2 wrong usage.
`

// topFlags is the command line of "abate top".
type topFlags struct {
	admin, token  string
	ca, cert, key string
	once          bool
}

// TopCommand is "abate top".
func TopCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parseTopFlags(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, topUsage)
		return 0
	case err != nil:
		for _, one := range cli.Each(err) {
			fmt.Fprintf(stderr, "abate top: %v\n", one)
		}
		fmt.Fprintln(stderr, `"abate top -h" explains the flags`)
		return 2
	}
	client, err := f.client()
	if err != nil {
		for _, one := range cli.Each(err) {
			fmt.Fprintf(stderr, "abate top: %v\n", one)
		}
		return 2
	}
	s, err := client.snapshot(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return 0
		}
		fmt.Fprintf(stderr, "abate top: %v\n", err)
		return 1
	}
	view := topView{snapshot: s, colour: os.Getenv("NO_COLOR") == ""}
	if out, ok := stdout.(*os.File); ok && !f.once && isTerminal(out) {
		view.live(ctx, client, openTerminal(out))
		return 0
	}
	view.colour, view.width, view.height = false, 1000, len(s.Rows)+10
	fmt.Fprint(stdout, strings.Join(view.table(), "\n")+"\n")
	return 0
}

func parseTopFlags(args []string) (*topFlags, error) {
	f := new(topFlags)
	set := flag.NewFlagSet("top", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.admin, "admin", "http://"+defaultAdmin, "")
	set.StringVar(&f.token, "token-file", "", "")
	set.StringVar(&f.ca, "ca", "", "")
	set.StringVar(&f.cert, "cert", "", "")
	set.StringVar(&f.key, "key", "", "")
	set.BoolVar(&f.once, "once", false, "")
	rest, err := cli.ParseAll(set, args)
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, word := range rest {
		problems = append(problems, fmt.Errorf("%q is not a flag; the address goes after --admin", word))
	}
	if (f.cert == "") != (f.key == "") {
		problems = append(problems, errors.New("--cert and --key go together: write both"))
	}
	return f, errors.Join(problems...)
}

// live shows the table until somebody ends it.
func (v *topView) live(ctx context.Context, client *topClient, t *terminal) {
	defer t.close()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	answers := make(chan topAnswer, 1)
	asking := false
	for {
		v.width, v.height = t.size()
		t.show(v.screen())
		select {
		case <-ctx.Done():
			return
		case key, ok := <-t.keys:
			if !ok {
				t.keys = nil // nobody types: refreshed until Ctrl-C
				continue
			}
			if v.press(key) {
				return
			}
		case <-tick.C:
		case a := <-answers:
			asking = false
			v.take(a)
			continue
		}
		if !asking {
			asking = true
			name, gate := v.opened, v.openedGate
			go func() { answers <- client.look(ctx, name, gate) }()
		}
	}
}

// take puts what was answered on the screen. While nothing answers, what was there stays.
func (v *topView) take(a topAnswer) {
	if v.problem = ""; a.err != nil {
		v.problem = a.err.Error()
		return
	}
	v.snapshot = a.snapshot
	v.at = min(v.at, max(len(v.snapshot.Rows)-1, 0))
	if a.detail != nil && a.name == v.opened && a.gate == v.openedGate {
		v.detail = a.detail
	}
}

// topAnswer is what was found out in one look.
type topAnswer struct {
	snapshot *abateadmin.Snapshot
	name     string
	gate     bool
	detail   *topDetail
	err      error
}
