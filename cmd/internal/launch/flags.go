package launch

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/cmd/internal/cli"
)

const usage = `Usage: abate run -c POLICY [FLAGS] -- PROGRAM [ARGS]

Starts a proxy on free ports of loopback, and the program with what its runtime needs to call through
it: HTTP_PROXY for those that look at it, -Dhttp.proxyHost for Java, a file that Node loads first. For
each service of the policy file ABATE_URL_NAME is a base URL that works for every client. Signals go
to the program, and its exit code is that of this command. At the end, and after ten seconds without
a call, standard error says whether calls went through, and which; connections to a service that go
past the proxy are reported, however short they are (Linux).

  -c, --config FILE      the policy file; it is reloaded when it changes
  --env NAME=SERVICE     the variable NAME gets the base URL of SERVICE too; as often as you like
  --strangers WHAT       pass (default): plain calls to hosts that the file does not list go on,
                         unguarded and counted; refuse: as outside.passThrough of the file says
  --grace D              how long the program may take to end after SIGTERM before it is killed
                         (default 10s)
  --admin ADDR           the live page: host:port, or unix:/PATH?mode=0660 (default 127.0.0.1:0, a free
                         port; "off" for none)
  --access-log WHICH     errors, all or off (default), on standard error
  --quiet                say nothing but what is wrong
  -h, --help             print this

Exit code: the program's, or 128 and the number of the signal that ended it; 126 or 127 if it could
not be started, 1 if the proxy could not, 2 wrong usage.
`

// options is the command line.
type options struct {
	policy    string
	env       []named
	strangers string
	grace     time.Duration
	admin     string
	accessLog string
	quiet     bool
	argv      []string
	problems  []error
}

// named is a variable of the user's for the base URL of a service.
type named struct{ name, service string }

func (o *options) wrong(format string, args ...any) {
	o.problems = append(o.problems, fmt.Errorf(format, args...))
}

// parse reads the words. It finds everything that is wrong with them; the error may be flag.ErrHelp.
func parse(args []string) (*options, error) {
	o := new(options)
	set := flag.NewFlagSet("run", flag.ContinueOnError)
	set.StringVar(&o.policy, "c", "", "")
	set.StringVar(&o.policy, "config", "", "")
	set.StringVar(&o.strangers, "strangers", "pass", "")
	set.DurationVar(&o.grace, "grace", 10*time.Second, "")
	set.StringVar(&o.admin, "admin", "127.0.0.1:0", "")
	set.StringVar(&o.accessLog, "access-log", cli.Off, "")
	set.BoolVar(&o.quiet, "quiet", false, "")
	set.Func("env", "", o.name)
	before, after, found := args, []string(nil), false
	if i := slices.Index(args, "--"); i >= 0 {
		before, after, found = args[:i], args[i+1:], true
	}
	words, err := cli.ReadFlags(set, before, o.wrong)
	if err != nil {
		return nil, err
	}
	o.argv = after
	o.check(words, found)
	return o, errors.Join(o.problems...)
}

func (o *options) check(words []string, found bool) {
	switch {
	case len(words) > 0:
		o.wrong("%q is not a flag: write -- before the program, for example abate run -c policy.yaml -- %s", words[0],
			strings.Join(words, " "))
	case !found || len(o.argv) == 0 || o.argv[0] == "":
		o.wrong("no program: write it behind --, for example abate run -c policy.yaml -- node app.js")
	}
	if o.policy == "" {
		o.wrong("no policy file: name one with -c, for example -c examples/policy.yaml")
	}
	if o.strangers != "pass" && o.strangers != "refuse" {
		o.wrong("--strangers %q is not known: write pass or refuse", o.strangers)
	}
	if o.grace <= 0 || o.grace > 24*time.Hour {
		o.wrong("--grace %v is out of range: write more than 0s and at most 24h", o.grace)
	}
	if problem := cli.AddressProblem("--admin", o.admin, "127.0.0.1:15000"); problem != nil {
		o.problems = append(o.problems, problem)
	}
	if o.accessLog != "errors" && o.accessLog != "all" && o.accessLog != cli.Off {
		o.wrong("--access-log %q is not known: write errors, all or off", o.accessLog)
	}
}

// name reads NAME=SERVICE.
func (o *options) name(text string) error {
	name, service, ok := strings.Cut(text, "=")
	bad := strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
	if !ok || name == "" || service == "" || bad >= 0 || name[0] >= '0' && name[0] <= '9' {
		return fmt.Errorf("%q is not NAME=SERVICE: write for example PAYMENTS_URL=payment-service", text)
	}
	if slices.ContainsFunc(o.env, func(n named) bool { return n.name == name }) {
		return fmt.Errorf("%s is given twice: it can have the base URL of one service only", name)
	}
	o.env = append(o.env, named{name, service})
	return nil
}
