package cli

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// ReadFlags sets the flags that words give, wherever they stand, and returns the other words; after "--" all are
// others. It calls wrong for everything that is wrong with them, so that nobody has to fix one after the other. The
// error is flag.ErrHelp or nil.
func ReadFlags(set *flag.FlagSet, args []string, wrong func(format string, args ...any)) (words []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			return append(words, args...), nil
		}
		if arg == ToStdout || !strings.HasPrefix(arg, "-") { // "-" is a file: standard input
			words = append(words, arg)
			continue
		}
		name, value, assigned := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		f := set.Lookup(name)
		switch {
		case name == "h" || name == "help":
			return words, flag.ErrHelp
		case f == nil:
			wrong("%s is not a flag", CutFlag(arg))
			if !assigned && len(args) > 0 && mayBeValue(args[0]) {
				args = args[1:]
			}
			continue
		case assigned:
		case IsSwitch(f):
			value = "true"
		case len(args) == 0 || args[0] == "--":
			wrong("--%s needs a value", name)
			continue
		default:
			value, args = args[0], args[1:]
		}
		if err := setFlag(set, f, value); err != nil {
			wrong("--%s: %v", name, err)
		}
	}
	return words, nil
}

// mayBeValue reports whether a word may be meant as the value of a flag that does not exist: a YAML file is one of its
// own.
func mayBeValue(word string) bool {
	ext := filepath.Ext(word)
	return !strings.HasPrefix(word, "-") && ext != ".yaml" && ext != ".yml"
}

// setFlag sets a flag. A value that is wrong leaves it as it was by default.
func setFlag(set *flag.FlagSet, f *flag.Flag, value string) error {
	err := set.Set(f.Name, value)
	if _, ok := f.Value.(flag.Getter); err == nil || !ok {
		return err
	}
	_ = f.Value.Set(f.DefValue)
	if IsSwitch(f) {
		return fmt.Errorf("%q is neither true nor false", value)
	}
	return fmt.Errorf("%q is not %s", value, KindOf(f))
}

// IsSwitch reports whether a flag needs no value.
func IsSwitch(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// KindOf says what a flag takes.
func KindOf(f *flag.Flag) string {
	switch f.Value.(flag.Getter).Get().(type) {
	case time.Duration:
		return "a length of time: write for example 500ms or 5s"
	case bool:
		return "true or false"
	case float64:
		return "a number"
	}
	return "a whole number"
}
