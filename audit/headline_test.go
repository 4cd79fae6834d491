package audit_test

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/lint"
)

func TestTheHeadlineSaysWhatIsProvedAndWhatDecidesTheRest(t *testing.T) {
	r := audit.Run(tree(t, "shop"), audit.Options{})
	text := r.Worst.Headline()
	for _, want := range []string{"can become 144 attempts", "Proved: at least 3, at most 144",
		"no file says how long resilience4j client (resilience4j orders) waits for orders.shop"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Contains(text, "answer") { // the shop's calls.yaml says of all applications what they answer
		t.Errorf("the answers of applications are said to be unknown: %s", text)
	}
	// What is said to decide does: once it is known, everything is proved.
	for wait, want := range map[string]float64{"100ms": 36, "3s": 144, "10s": 144} {
		form := regexp.MustCompile(`perTry: unknown [^\n]*`).ReplaceAllString(string(r.Form.YAML()), "perTry: "+wait)
		told := audit.Run(file(form), audit.Options{})
		if w := told.Worst; w.Proved != want || w.Most != want || strings.Contains(w.Headline(), "Proved") {
			t.Errorf("with a wait of %s: %s", wait, told.Worst.Headline())
		}
	}
}

// The finding about it stands where the layer does whose wait nobody knows, and says what to write.
func TestAWaitThatDecidesIsAFindingWhereItIsMissing(t *testing.T) {
	r := audit.Run(tree(t, "shop"), audit.Options{})
	for _, f := range r.Findings {
		if f.Rule != "F102" {
			continue
		}
		if f.Subject != "waits of resilience4j client (resilience4j orders)" || !strings.Contains(f.At.File, "checkout") ||
			!strings.Contains(f.Fix, "no file says how long resilience4j client (resilience4j orders) waits for orders.shop") {
			t.Errorf("%+v", f)
		}
		return
	}
	t.Error("there is none")
}

func TestBehindACircleItIsNotSaidThatNothingIsRepeated(t *testing.T) {
	const tries = ", layers: [{kind: client, repeats: [{on: [\"503\"], tries: 3}]}]}\n"
	for _, form := range []string{
		"calls:\n- {from: a, to: b}\n- {from: b, to: a}\n- {from: b, to: c" + tries,
		"calls:\n- {from: a, to: b}\n- {from: b, to: a" + tries,
	} {
		var text bytes.Buffer
		if err := audit.Text(&text, audit.Run(file(form), audit.Options{}), audit.TextOptions{}); err != nil {
			t.Fatal(err)
		}
		if want := "is not known: calls go in a circle, a → b → a"; !strings.Contains(text.String(), want) {
			t.Errorf("%s\nlacks %q", text.String(), want)
		}
	}
}

func TestRequestsThatAreRepeatedInFrontOfAServiceAreForIt(t *testing.T) {
	r := audit.Run(file(`calls:
- {to: orders, layers: [{kind: gateway, product: x, repeats: [{on: ["503"], tries: 3}]}]}
`), audit.Options{})
	if got := r.Worst.Headline(); got != "one request for orders can become 3 attempts at it when it answers 503" {
		t.Errorf("%s", got)
	}
}

func TestUnknownAnswersAreNamedInTheHeadline(t *testing.T) {
	r := audit.Run(file(`calls:
- {from: shop, to: a, layers: [{kind: client, product: x, repeats: [{on: [any], tries: 3}]}]}
- {from: a, to: b, layers: [{kind: client, product: x, repeats: [{on: [any], tries: 3}]}]}
- {from: b, to: db, layers: [{kind: client, product: x, repeats: [{on: [any], tries: 3}]}]}
`), audit.Options{})
	if got := r.Worst.Headline(); !strings.Contains(got, "no file says what a and b answer when a call of theirs fails") {
		t.Errorf("%s", got)
	}
}

func TestOneOfSeveralWaysSaysHowMuchItBrings(t *testing.T) {
	r := audit.Run(file(`services: [{name: a, answersWith: same}, {name: b, answersWith: same}]
calls:
- {from: shop, to: a, layers: [{kind: client, product: x, repeats: [{on: [any], tries: 5}]}]}
- {from: shop, to: b, layers: [{kind: client, product: x, repeats: [{on: [any], tries: 2}]}]}
- {from: a, to: db}
- {from: b, to: db}
`), audit.Options{})
	for name, form := range map[string]func(*bytes.Buffer) error{
		"text":     func(b *bytes.Buffer) error { return audit.Text(b, r, audit.TextOptions{}) },
		"Markdown": func(b *bytes.Buffer) error { return audit.Markdown(b, r) },
		"HTML":     func(b *bytes.Buffer) error { return audit.HTML(b, r) },
	} {
		var b bytes.Buffer
		if err := form(&b); err != nil || !strings.Contains(b.String(), "way that brings most, 5 of the 7") {
			t.Errorf("%s: %v\n%s", name, err, &b)
		}
	}
}

// A service that holds several addresses need not call all of them for one request.
func TestTheFirstLineSaysThatItAddsUpGuesses(t *testing.T) {
	for per, want := range map[string]bool{"": false,
		", perRequest: \"1 (assumed: the address stands in the variable X)\"": true} {
		r := audit.Run(file("services: [{name: a, answersWith: same}, {name: b, answersWith: same}]\ncalls:\n"+
			"- {to: shop, layers: [{kind: gateway, product: x, repeats: [{on: [any], tries: 2}]}]}\n"+
			"- {from: shop, to: a"+per+"}\n- {from: shop, to: b"+per+"}\n- {from: a, to: db}\n- {from: b, to: db}\n"+
			""), audit.Options{})
		got := r.Worst.Headline()
		if strings.Contains(got, ", if it makes every call whose address a variable holds") != want {
			t.Errorf("%q: %s", per, got)
		}
	}
}

func TestWhatNothingBoundsIsSaidInWords(t *testing.T) {
	endless := "layers: [{kind: client, product: x, repeats: [{on: [refused, \"503\"], tries: unbounded}]}]"
	files := file("services: [{name: a, answersWith: same}]\ncalls:\n- {from: shop, to: a, " + endless + "}\n" +
		"- {from: a, to: db, " + endless + "}\n- {from: a, to: c, layers: [{kind: client, product: x, " +
		"repeats: [{on: [\"503\"], tries: unknown (code)}]}]}\n")
	r := audit.Run(files, audit.Options{})
	text := textOf(t, r, audit.TextOptions{All: true})
	var page bytes.Buffer
	if err := audit.HTML(&page, r); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"NaN", "at least any", "limit times", "×without", "× any", "Inf", "46116860"} {
		if strings.Contains(text, bad) || strings.Contains(page.String(), bad) {
			t.Errorf("%q in\n%s\n%s", bad, text, &page)
		}
	}
	if !strings.Contains(text, "can become any number of attempts at") || !strings.Contains(page.String(), ">no limit<") {
		t.Errorf("the limit that is missing is not said:\n%s\n%s", text, &page)
	}
}

// Dapr ends its tries when the breaker beside them opens.
func TestTheHeadlineSaysThatABreakerEndsTheTries(t *testing.T) {
	const resiliency = "apiVersion: dapr.io/v1alpha1\nkind: Resiliency\nmetadata: {name: r}\nscopes: [shop]\nspec:\n" +
		"  policies:\n    retries: {all: {policy: constant, maxRetries: -1}}\n" +
		"    circuitBreakers: {cb: {timeout: 5s, trip: consecutiveFailures >= 5}}\n" +
		"  targets: {apps: {orders: {retry: all BREAKER}}}\n"
	for breaker, want := range map[string]bool{", circuitBreaker: cb": true, "": false} {
		text := textOf(t, audit.Run(file(strings.Replace(resiliency, " BREAKER", breaker, 1)), audit.Options{}),
			audit.TextOptions{})
		first, rest, _ := strings.Cut(text, "\n")
		path, _, _ := strings.Cut(rest, "F101")
		if !strings.Contains(first, "any number of attempts") ||
			strings.Contains(first, "unless a breaker on the way opens first") != want ||
			strings.Contains(path, "unless its breaker sees 5 failures in a row") != want {
			t.Errorf("%q: %s", breaker, text)
		}
	}
}

func TestNothingReadIsNotNothingRepeated(t *testing.T) {
	for text, want := range map[string]string{"": "None of these files is of a kind that is read",
		"apiVersion: v1\nkind: Service\nmetadata: {name: shop}\n":                 "These files name no call",
		"calls: [{from: shop, to: a}, {from: shop, to: db}, {from: a, to: db}]\n": "No call is repeated"} {
		if got := textOf(t, audit.Run(file(text), audit.Options{}), audit.TextOptions{}); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// labels are the numbers on the arrows of a page that are on the worst path, or all of them.
func labels(page string, worst bool) []string {
	var all []string
	for _, m := range regexp.MustCompile(`<text class="label( worst)?" [^>]*>([^<]*)<`).FindAllStringSubmatch(page, -1) {
		if !worst || m[1] != "" {
			all = append(all, m[2])
		}
	}
	return all
}

func TestTheNumbersOnTheArrowsMultiplyToTheHeadline(t *testing.T) {
	var b bytes.Buffer
	r := audit.Run(tree(t, "shop"), audit.Options{})
	if err := audit.HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	product := 1.0
	for _, l := range labels(b.String(), true) {
		n, err := strconv.ParseFloat(strings.TrimPrefix(l, "× "), 64)
		if err != nil {
			t.Fatal(err)
		}
		product *= n
	}
	if product != r.Worst.Most {
		t.Errorf("the arrows %q multiply to %v, and the headline says %v", labels(b.String(), true), product, r.Worst.Most)
	}
}

func TestAlternativesOnAnArrowAreNotMultiplied(t *testing.T) {
	route := func(n string) string {
		return "{kind: gateway, product: x, choice: routes, match: {path: /" + n + "}, " +
			"repeats: [{on: [\"503\"], tries: " + n + "}]}"
	}
	r := audit.Run(file("calls:\n- {from: shop, to: orders, layers: ["+route("2")+", "+route("3")+", "+route("4")+"]}\n"+
		"- {from: other, to: stock, layers: ["+route("2")+", "+route("3")+"]}\n"), audit.Options{})
	var b bytes.Buffer
	if err := audit.HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	if got := labels(b.String(), false); !slices.Equal(got, []string{"× 4", "× 3"}) {
		t.Errorf("labels %q", got)
	}
}

// numbersOf returns the numbers of an SVG element's attributes.
func numbersOf(element string, names ...string) (all []int) {
	for _, n := range names {
		m := regexp.MustCompile(`\b` + n + `="(-?\d+)"`).FindStringSubmatch(element)
		v, _ := strconv.Atoi(m[1])
		all = append(all, v)
	}
	return all
}

func TestLabelsOfArrowsHideNoServiceAndNamesHaveRoom(t *testing.T) {
	form := "calls:\n"
	for _, to := range []string{"a", "b", "c", "the-service-with-a-long-name.shop"} {
		form += "- {from: shop, to: " + to + ", layers: [{kind: client, product: x, " +
			"repeats: [{on: [\"503\"], tries: 3}]}]}\n" +
			"- {from: " + to + ", to: db, layers: [{kind: client, product: x, repeats: [{on: [\"503\"], tries: 2}]}]}\n"
	}
	form += "- {from: shop, to: db, layers: [{kind: client, product: x, repeats: [{on: [\"503\"], tries: 7}]}]}\n"
	var b bytes.Buffer
	if err := audit.HTML(&b, audit.Run(file(form), audit.Options{})); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	rects := regexp.MustCompile(`<rect [^>]*>`).FindAllString(page, -1)
	for _, l := range regexp.MustCompile(`<text class="label[^>]*>[^<]*<`).FindAllString(page, -1) {
		at := numbersOf(l, "x", "y")
		for _, rect := range rects {
			r := numbersOf(rect, "x", "y", "width", "height")
			if at[0] > r[0] && at[0] < r[0]+r[2] && at[1]-5 > r[1] && at[1]-5 < r[1]+r[3] {
				t.Errorf("%s lies on %s", l, rect)
			}
		}
	}
	if w := numbersOf(rects[0], "width")[0]; w < 7*len("the-service-with-a-long-name.sh") {
		t.Errorf("boxes are %d wide", w)
	}
}

func TestAFixOfRetriesWithoutALimitIsProposed(t *testing.T) {
	files := []importer.File{{Name: "dapr.yaml", Data: []byte(`apiVersion: dapr.io/v1alpha1
kind: Resiliency
metadata: {name: r}
scopes: [shop]
spec:
  policies: {retries: {forever: {policy: constant, duration: 5s, maxRetries: -1}}}
  targets: {apps: {orders: {retry: forever}}}
`)}, {Name: "calls.yaml", Data: []byte("calls: [{from: shop, to: orders}]\n")}}
	r := audit.Run(files, audit.Options{})
	r.Propose(files, lint.Options{})
	if !strings.Contains(r.Diff, "+  policies: {retries: {forever: {policy: constant, duration: 5s, maxRetries: 0}}}") {
		t.Errorf("left %q, diff\n%s", r.Left, r.Diff)
	}
}

func TestNoNumberOfAttemptsFillsTheScreen(t *testing.T) {
	form := "calls:\n"
	for _, way := range []string{"from: a, to: b", "from: b, to: c", "from: c, to: d"} {
		form += "- {" + way + ", layers: [{kind: client, repeats: [{on: [\"503\"], tries: 900}]}]}\n"
	}
	if got := audit.Run(file(form), audit.Options{}).Worst.Headline(); !strings.Contains(got, "7.3e+08 attempts") {
		t.Errorf("%s", got)
	}
}

// behindUnknown are two calls, one behind the other. Of the first nobody knows how often it is tried.
func behindUnknown(tries string) string {
	return "services: [{name: a, answersWith: same}]\ncalls:\n" +
		"- {from: shop, to: a, layers: [{kind: client, repeats: [{on: [\"503\"], tries: unknown (code)}]}]}\n" +
		"- {from: a, to: db, layers: [{kind: client, repeats: [{on: [\"503\"], tries: " + tries + "}]}]}\n"
}

func TestWhatNobodyKnowsIsNotSaidToBeBounded(t *testing.T) {
	run := func(text string) (*audit.Result, string) {
		r := audit.Run(file(text), audit.Options{})
		r.Propose(file(text), lint.Options{})
		return r, textOf(t, r, audit.TextOptions{})
	}
	_, text := run(behindUnknown("1"))
	if want := "Whether a call is repeated is not known: some values could not be read.\n"; !strings.HasPrefix(
		text, want) {
		t.Errorf("not %q but %s", want, text)
	}
	_, text = run(behindUnknown("9"))
	if !strings.Contains(text, "then becomes an unknown number of attempts, for") ||
		strings.Contains(text, "attempt at most") {
		t.Errorf("of the call whose tries nobody knows something is said:\n%s", text)
	}
	_, text = run(behindUnknown("9") + "- {from: db, to: disk, layers: [{kind: client, " +
		"repeats: [{on: [\"503\"], tries: \"3 (assumed: so it is)\"}]}]}\n")
	if !strings.Contains(text, "then becomes at least 3 attempts; some values") ||
		strings.Contains(text, "attempts at most") {
		t.Errorf("a number that nobody knows counts as the least:\n%s", text)
	}
}

func TestAFixThatChangesNothingSaysWhy(t *testing.T) {
	layer := func(tries string) string {
		return "calls: [{from: shop, to: orders, layers: [{kind: client, " +
			"repeats: [{on: [\"503\"], tries: " + tries + "}]}]}]\n"
	}
	for text, want := range map[string]string{
		layer("3"):                               "No change is proposed: one request becomes no more than 4 attempts.",
		layer(`"9 (assumed: somebody said so)"`): "proposed: no number in these files makes the worst path shorter.",
		"":                                       "No change is proposed: nobody knows what is repeated.",
		layer("unknown (code)"):                  "No change is proposed: nobody knows what is repeated.",
		behindUnknown(`"3 (assumed: so it is)"`): "proposed: no number in these files makes the worst path shorter.",
	} {
		r := audit.Run(file(text), audit.Options{})
		if got := textOf(t, r, audit.TextOptions{}); strings.Contains(got, "is proposed") {
			t.Errorf("without --fix:\n%s", got)
		}
		r.Propose(file(text), lint.Options{})
		if got := textOf(t, r, audit.TextOptions{}); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// Of a service that speaks gRPC the number would be 30, and no finding says what the first line rests on.
func TestTheTextSaysThatCodesOfGRPCAreNotCountedAlsoWhereNoFindingDoes(t *testing.T) {
	const form = `services: [{name: a, rate: 1}, {name: b}]
calls:
- {from: a, to: b, unsafe: false, layers: [{kind: sidecar-out, product: istio, overall: 1s, repeats: [
   {on: [refused, "503"], tries: 2}, {on: [UNAVAILABLE], tries: 30, pause: 10ms}]}]}
`
	const rests = "These rest on: services of which no file says that they speak gRPC do not"
	for text, want := range map[string]bool{form: true,
		strings.Replace(form, "{name: b}", "{name: b, speaks: http}", 1):                   false,
		strings.Replace(form, "{name: b}", "{name: b, speaks: grpc}", 1):                   false,
		strings.NewReplacer("tries: 2", "tries: 1", "tries: 30", "tries: 1").Replace(form): false} {
		var b bytes.Buffer
		err := audit.Text(&b, audit.Run(file(text), audit.Options{}), audit.TextOptions{})
		if err != nil || strings.Contains(b.String(), rests) != want {
			t.Errorf("it is said: %v, want %v (%v)\n%s", !want, want, err, &b)
		}
	}
}

// A circle beside the worst path is in no number, so the first line says so.
func TestACircleBesideTheWorstPathIsInTheHeadline(t *testing.T) {
	const tries = ", layers: [{kind: client, repeats: [{on: [\"503\"], tries: 3}]}]}\n"
	for repeated, want := range map[string]bool{tries: true, "}\n": false} {
		var text bytes.Buffer
		form := "calls:\n- {from: a, to: b}\n- {from: b, to: c" + repeated + "- {from: c, to: b}\n- {from: a, to: e" + tries
		r := audit.Run(file(form), audit.Options{})
		if err := audit.Text(&text, r, audit.TextOptions{}); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(text.String(), "\n")
		if !strings.Contains(first, "3 attempts at e") ||
			strings.Contains(first, "Nothing bounds the calls that go in a circle, b → c → b") != want {
			t.Errorf("%s", first)
		}
	}
}
