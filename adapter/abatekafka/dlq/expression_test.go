package dlq_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func example() *dlq.Entry {
	return &dlq.Entry{
		At:      letter.Place{Topic: "payments-dlq", Partition: 3, Offset: 1042},
		Written: noon.Add(-90 * time.Minute),
		Group:   "ab12",
		Letter: letter.Letter{
			Dialect: letter.Abate, Original: letter.Place{Topic: "payments", Partition: 2, Offset: 77},
			Timestamp: noon.Add(-2 * time.Hour), Group: "billing", Failures: 4,
			First: noon.Add(-100 * time.Minute), Class: "*net.OpError", Message: "refused", Reason: "exhausted",
			Key: []byte("cust-42"),
			Value: []byte(
				`{"order":{"amount":12.5,"items":[{"id":"a"},{"id":7}],"paid":false,"note":null},"eur":true,"big":1748592847362847361}`),
			Headers: []kgo.RecordHeader{{Key: "event-id", Value: []byte("6")}, {Key: "event-id", Value: []byte("7")},
				{Key: "empty"}},
		},
	}
}

func TestExpressionsHold(t *testing.T) {
	for text, want := range map[string]bool{
		`class == "*net.OpError"`: true, `class != "*net.OpError"`: false, `key ~ "^cust-[0-9]+$"`: true, `key ~ "^4"`: false,
		`value contains "eur"`:   true,
		`message contains 'fus'`: true, `reason == "exhausted" && group == "billing" && topic == "payments" && dialect == ` +
			`"abate" && id == "ab12" && trace == ""`: true,
		`failures > 3`: true, `failures > 4`: false, `failures >= 4 && failures <= 4 && failures == 4.0 && failures != 5 ` +
			`&& failures < 5`: true,
		`replays == 0 && partition == 2 && offset == 77 && size > 10 && at.partition == 3 && at.offset == 1042`: true,
		`age < 2h`: true, `age < 1h`: false, `age > 1h29m && age <= 90m`: true, `age < 7d`: true, `age > -1s`: true,
		`written > "2026-01-31"`: true, `written > "2026-01-31T10:30:01Z"`: false,
		`written == "2026-01-31T11:30:00+01:00"`: true, `last < "2030-01-01"`: false, `timestamp < "2026-01-31T12:00"`: true,
		`header("event-id") == "7"`: true, `header("event-id") == 7`: true, `header("event-id") == "6"`: false,
		`header("empty") == ""`: true, `header("none")`: false, `header("empty")`: true,
		`header("none") != "x"`: true, `header("none") == ""`: false, `!header("none")`: true,
		`header("event-id") > 6.5`:           true,
		`json("big") == 1748592847362847361`: true, `json("big") == 1748592847362847362`: false,
		`json("big") > 1748592847362847360`: true, `json("big") < 1e30`: true,
		`json("order.amount") > 10`: true, `json("order.amount") == "12.5"`: true, `json("order.items.1.id") == 7`: true,
		`json("order.items.0.id") == "a"`: true, `json("order.items.9.id")`: false,
		`json("order.items.0.id") > 3`: false, `json("order.items.0.id") != 3`: true, `json("order.paid") == false`: true,
		`json("eur") == true`: true, `json("eur") != true`: false, `json("order.note")`: false,
		`json("order.items") contains "\"id\":7"`: true, `json("order.amount.deeper")`: false,
		`pointer`: false, `!pointer`: true, `!!pointer`: false,
		`pointer || failures == 4 && class == "x"`: false, `(pointer || failures == 4) && !(class == "x")`: true,
		`failures == 4 || pointer && pointer`:   true,
		`json("big") < 12345678901234567890123`: true, `offset == 12345678901234567890123`: false,
		`class == "x" and failures > 3 or not pointer`: true,
		`!failures > 4`: true, `!!json("eur") == true`: true, `!header("none") == "x"`: true,
		`key ~ '^cust-\d+$' && class != '\' && message != 'a"b'`: true,
		`key~"^cust"&&age<2h&&failures>-1`:                       true, strings.Repeat("!", 50) + "pointer": false,
	} {
		x, err := dlq.ParseExpression(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := x.Match(example(), noon); got != want || x.String() != text {
			t.Errorf("%s: %v", text, got)
		}
	}
	x, err := dlq.ParseExpression(`json("a") || value == "" && size == 0`)
	if err != nil || !x.Match(&dlq.Entry{}, noon) {
		t.Errorf("a letter without anything: %v", err)
	}
	e := example()
	e.Letter.Value = []byte(`{"a":1} {"a":2}`)
	if x, _ := dlq.ParseExpression(`json("a")`); x.Match(e, noon) {
		t.Error("two values are not one")
	}
}

func TestExpressionsTellEverythingThatIsWrong(t *testing.T) {
	for text, want := range map[string][]string{
		``: {"column 1: there is no expression"},
		`clas == "x" && failures > "3"`: {`column 1: "clas" is not known; write one of class, message`,
			`column 27: "3" is not a number; write one without unit and quotes, for example failures > 3`},
		`class == timeout`: {`column 10: "timeout" is not a value; text stands in quotes: class == "timeout"`},
		`class = "x"`:      {`column 7: "=" is not expected here; write == to compare`},
		`failures > 3h || age < 5`: {`column 12: "3h" is not a number`,
			`column 24: "5" is not a duration; write one with its unit and without quotes, for example age < 2h`},
		`class > "a" && failures ~ "1"`: {
			`column 7: text has no order: ">" cannot compare class; write ==, !=, ~ or contains`,
			`column 25: failures is not text`,
		},
		`key ~ "(" && key == 42`: {`column 7: the regular expression cannot be read: missing closing )`,
			`column 21: key is text; put the value in quotes: key == "42"`},
		`written > "yesterday"`: {`column 11: "yesterday" is not a time; write one in quotes`},
		`(failures > 3`:         {"column 1: the bracket is not closed; write )"},
		`failures > 3)`:         {`column 13: ")" is not expected here`},
		// what the library would read, and ours never did
		`class == "x" // && age > 7d`: {`column 14: "//" is not expected here; write a comparison`},
		`class == "x" /* y */`:        {`column 14: "/*" is not expected here; write a comparison`},
		`failures > 0x10`:             {`column 12: "0x10" is not a number; write it in decimal digits`},
		`failures > 1_000`:            {`column 12: "1_000" is not a number; write it in decimal digits`},
		`failures > 3 failures > 4`: {
			`column 14: "failures" is not expected here; between two comparisons stands && or ||`,
		},
		`failures`:                        {"column 1: failures is compared with nothing; write failures > 3"},
		`header == "x"`:                   {`column 1: header needs a name; write a name in brackets and quotes`},
		`header(x) == "x" || json()`:      {"column 8: header needs a name", "column 21: json needs a name"},
		`pointer == 3`:                    {"column 9: pointer is compared with nothing; write pointer alone, or !pointer"},
		`class == "x`:                     {"column 10: the quotes are not closed"},
		`zoë && class == "x"`:             {`column 1: "zoë" is not known`},
		`zoë && class == “x”`:             {`column 17: "“" is not expected here; put text in "straight quotes"`},
		`failures >`:                      {"column 11: there is no value after >"},
		`failures > 3 &&`:                 {"column 16: something is missing at the end"},
		`json("a") < true`:                {`column 11: true has no order; write == or !=`},
		strings.Repeat("(", 60) + "x":     {"column 60: the bracket is not closed"},
		`key ~ "(a{1,30}b){30}"`:          {"column 7: the regular expressions have more than 1000 steps"},
		`any(0..1e9, # > 3)`:              {`column 1: "any(0..1e+09, # > 3)" is not expected here`},
		strings.Repeat(" ", 2001):         {"column 1: 2001 bytes are too long"},
		"class == \"\xff\"":               {"column 1: it is not UTF-8"},
		`3 < failures`:                    {`column 1: "3" is not expected here; a comparison begins with what is compared`},
		`class == "a" & key == "b" | key`: {`column 14: "&" is not expected here; write && for and`},
	} {
		_, err := dlq.ParseExpression(text)
		var list dlq.ExpressionErrors
		if !errors.As(err, &list) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains("\n"+err.Error(), "\n"+w) {
				t.Errorf("%s: there is no %q in\n%v", text, w, err)
			}
		}
		for i, e := range list {
			if e.Fix == "" || i > 0 && e.Column < list[i-1].Column {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

func TestExpressionHelpIsNarrow(t *testing.T) {
	for line := range strings.Lines(dlq.ExpressionHelp) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
		if text := strings.TrimSpace(line); strings.HasPrefix(line, "  ") && strings.Contains(text, "&&") {
			if _, err := dlq.ParseExpression(text); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

func FuzzExpression(f *testing.F) {
	for _, s := range []string{`class == "x" && !(failures > 3 || age < 2h)`, `header("a") contains 'b'`,
		`json("a.0") >= -1.5`, `written < "2026-01-01"`, `((`, `"`, `a.b-c ~ "("`, `!pointer`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x, err := dlq.ParseExpression(text)
		if err != nil {
			var list dlq.ExpressionErrors
			if !errors.As(err, &list) || len(list) == 0 {
				t.Fatalf("%q: %v", text, err)
			}
			for _, e := range list {
				if e.Column < 1 || e.Column > len([]rune(text))+1 || e.Problem == "" || e.Fix == "" {
					t.Errorf("%q: %+v", text, e)
				}
			}
			return
		}
		is := x.Match(example(), noon)
		if not, err := dlq.ParseExpression("!(" + text + ")"); err == nil && not.Match(example(), noon) == is {
			t.Errorf("%q and its contrary are both %v", text, is)
		}
		x.Match(&dlq.Entry{}, noon)
	})
}

// A letter and an expression of strangers: what they can cost is bounded by their lengths.
func TestHostileExpressionsAndLettersAreBounded(t *testing.T) {
	e := example()
	e.Letter.Value = []byte(strings.Repeat("[", 50_000) + strings.Repeat("a", 50_000))
	for _, text := range []string{
		`value ~ "(a*)*(a*)*(a*)*b$"`,
		`json("a.0") || json("0.0.0.0") || header("a") > 1e300`,
		strings.TrimSuffix(strings.Repeat(`value contains "ab" || `, 80), "|| "),
		strings.Repeat("!(", 600) + "pointer" + strings.Repeat(")", 600),
	} {
		x, err := dlq.ParseExpression(text)
		if err != nil {
			t.Errorf("%.60s: %v", text, err)
			continue
		}
		if x.Match(e, noon) {
			t.Errorf("%.60s holds", text)
		}
	}
	for _, text := range []string{
		`map(0..1e9, #)`, `let a = value; a contains a`, `value + value == "a"`, `key ~ value`, `"a" in [1]`, `key == value`,
		`$env["value"] == "a"`, `json(value) == "a"`, `value[0] == "a"`, `value.len > 3`, `repeat("a", 1e9) == key`,
		`holds(letter, 1)`,
		`size ** 9 > 1`, `pointer ? pointer : pointer`, `key ?? key`, `duration("1h") > age`, `1 < failures < 9`,
	} {
		if _, err := dlq.ParseExpression(text); err == nil {
			t.Errorf("%s is an expression", text)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	x, err := dlq.ParseExpression(`class == "*net.OpError" && failures > 3 && age < 2h`)
	if err != nil {
		b.Fatal(err)
	}
	e := example()
	b.ReportAllocs()
	for b.Loop() {
		x.Match(e, noon)
	}
}
