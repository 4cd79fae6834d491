package lint_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/lint"
)

// fanned is edge → shop, tried again, and five services that shop may call for one request, which all call the same.
func fanned(perRequest, tries string) string {
	text := "services: [{name: edge}, {name: shop, answersWith: same}, {name: id}"
	calls := "calls:\n- {from: edge, to: shop, layers: [{kind: gateway, product: nginx, " + on(tries, "503") + "}]}\n"
	for _, name := range []string{"one", "two", "three", "four", "five"} {
		text += ", {name: " + name + ", answersWith: same}"
		calls += "- {from: shop, to: " + name + perRequest + "}\n- {from: " + name + ", to: id}\n"
	}
	return text + "]\n" + calls
}

func TestCallsThatAreGuessedFromVariablesAreNotAddedUp(t *testing.T) {
	const variable = ", perRequest: \"1 (assumed: the address stands in the variable X)\""
	guessed := fanned(variable, `"3 (default of nginx 1)"`)
	if got := of("F101", lint.Run(parse(t, guessed), lint.Options{})); len(got) > 0 {
		t.Errorf("%+v, want none: who holds five addresses need not call all five for one request", got)
	}
	for _, c := range []struct {
		form, says string
		want, nine lint.Severity
	}{
		{fanned("", `"3 (default of nginx 1)"`), "can become up to 15 attempts", lint.Error, lint.Warning},
		{fanned(variable, `"11 (default of nginx 1)"`), "can become up to 55 attempts", lint.Error, lint.Warning},
	} {
		got := of("F101", lint.Run(parse(t, c.form), lint.Options{}))
		if len(got) == 0 || got[0].Severity != c.want || !strings.Contains(got[0].Message, c.says) {
			t.Errorf("%+v, want %v that says %q", got, c.want, c.says)
		}
		idle := strings.ReplaceAll(c.form, `"503"`, "refused") // which loads nobody
		if got := of("F101", lint.Run(parse(t, idle), lint.Options{})); len(got) == 0 {
			t.Error("connections that nobody accepts: no F101")
		}
		if got := of("F107", lint.Run(parse(t, c.form), lint.Options{})); len(got) != 1 || got[0].Severity != c.nine {
			t.Errorf("%+v, want %v", got, c.nine)
		}
	}
}

func TestAGuessedCallMakesNoFindingOfItsOwn(t *testing.T) {
	const variable = ", perRequest: \"1 (assumed: the address stands in the variable X)\""
	said := fanned("", `"3 (default of nginx 1)"`)
	guessed := strings.Replace(said, "to: five", "to: five"+variable, 1)
	if said == guessed {
		t.Fatal("nothing is guessed")
	}
	got := of("F101", lint.Run(parse(t, guessed), lint.Options{}))
	if len(got) != 1 || got[0].Severity != lint.Error ||
		!strings.Contains(got[0].Message, "12 without those that it need not make") {
		t.Errorf("%+v, want an error that says what is proved without the guess", got)
	}
	if got = of("F101", lint.Run(parse(t, guessed), lint.Options{MaxAmplification: 12})); len(got) > 0 {
		t.Errorf("%+v, want none: without the guess it is within the limit", got)
	}
}

func TestWhereOneLayerRepeatsThereAreNoOthersToSwitchOff(t *testing.T) {
	for form, others := range map[string]bool{call(nobody, on("11", "503")): false,
		chained("answersWith: \"503\"", on("4", "503"), on("3", "503")): true} {
		got := of("F101", lint.Run(parse(t, form), lint.Options{}))
		if len(got) != 1 || strings.Contains(got[0].Fix, "the others") != others ||
			strings.Contains(got[0].Fix, "which alone repeats") == others {
			t.Errorf("%+v", got)
		}
	}
}

func TestWhatOnlyCodeSaysIsNotAsserted(t *testing.T) {
	for layer, want := range map[string]lint.Severity{"product: resilience4j, ": lint.Note, "product: polly, ": lint.Note,
		"": lint.Warning} {
		for _, rule := range []string{"F301", "F304"} {
			form := call(nobody, layer+on("2", "503", "409"))
			got := of(rule, lint.Run(parse(t, form), lint.Options{}))
			if len(got) != 1 || got[0].Severity != want ||
				strings.HasPrefix(got[0].Message, "if what it guards writes, ") != (want == lint.Note && rule == "F301") ||
				rule == "F304" && strings.Contains(got[0].Message+got[0].Fix, "write") != (want == lint.Warning) {
				t.Errorf("%s of %q: %+v, want %v", rule, layer, got, want)
			}
			known := strings.Replace(form, "to: b", "to: b\n  unsafe: true", 1)
			if got := of(rule, lint.Run(parse(t, known), lint.Options{})); len(got) != 1 || got[0].Severity < lint.Warning {
				t.Errorf("%s of %q, which writes: %+v", rule, layer, got)
			}
		}
	}
}
