package awssdk_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/awssdk"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

func read(t *testing.T, name, text string) topology.Form {
	t.Helper()
	docs := []source.Document{{File: name, Data: []byte(text)}}
	if strings.HasSuffix(name, ".yaml") {
		docs, _ = source.YAML(name, []byte(text))
	}
	for _, d := range docs {
		if !awssdk.Recognise(d) {
			t.Fatalf("not recognised:\n%s", text)
		}
	}
	return awssdk.Read(docs, source.Assume{})
}

func deployment(env string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop, namespace: eu}\nspec:\n  template:\n" +
		"    spec:\n" +
		"      containers:\n      - name: a\n        env: [" + env + "]\n"
}

func TestTheEnvironmentSaysHowOftenTheSDKTries(t *testing.T) {
	for env, want := range map[string]string{
		`{name: AWS_MAX_ATTEMPTS, value: "5"}`:        "5 (d.yaml:9:47)",
		`{name: AWS_RETRY_MODE, value: standard}`:     "3 (default of AWS SDKs in mode standard; d.yaml:9:45)",
		`{name: AWS_RETRY_MODE, value: legacy}`:       "unknown (in mode legacy each SDK has its own number; d.yaml:9:45)",
		`{name: AWS_RETRY_MODE, value: "${MODE}"}`:    "unknown (template ${MODE}; d.yaml:9:45)",
		`{name: AWS_MAX_ATTEMPTS, value: "{{ .n }}"}`: "unknown (template {{ .n }}; d.yaml:9:47)",
		`{name: AWS_MAX_ATTEMPTS, value: "0"}`:        "unknown (0 attempts differ between SDKs; d.yaml:9:47)",
		`{name: AWS_RETRY_MODE, value: adaptve}`:      "3 (default of AWS SDKs in mode standard; d.yaml:9:45)",
	} {
		f := read(t, "d.yaml", deployment(env))
		if len(f.Calls) != 1 || f.Calls[0].From != "shop.eu" || f.Calls[0].To != "aws" {
			t.Fatalf("%s: %s", env, f.YAML())
		}
		l := f.Calls[0].Layers[0]
		if got := l.Repeats[0].Tries.String(); got != want {
			t.Errorf("%s: %s, want %s", env, got, want)
		}
		bad := strings.Contains(env, "adaptve") || strings.Contains(env, `"0"`) || strings.Contains(env, "{{")
		if bad != (len(f.Remarks) == 1) {
			t.Errorf("%s: remarks %v", env, f.Remarks)
		}
	}
}

func TestComposeFilesAndProfilesAreRead(t *testing.T) {
	f := read(t, "c.yaml", "services:\n  a: {image: x, environment: {AWS_MAX_ATTEMPTS: 2}}\n  b:\n    image: y\n"+
		"    environment:\n"+
		"    - AWS_MAX_ATTEMPTS=7\n  c: {image: z}\n")
	if len(f.Calls) != 2 || f.Calls[0].Layers[0].Repeats[0].Tries.V != 2 || f.Calls[1].Layers[0].Repeats[0].Tries.V != 7 {
		t.Errorf("%s", f.YAML())
	}
	f = read(t, "shop/aws.config", "[default]\nregion = eu\nmax_attempts = 4\n\n[profile batch]\n"+
		"retry_mode=standard\n[profile x]\na=1\n")
	if len(f.Calls) != 2 || f.Calls[0].Layers[0].Repeats[0].Tries.String() != "4 (shop/aws.config:3:1)" ||
		f.Calls[1].Layers[0].Tries(topology.S503, topology.Unsafe).N != 3 ||
		f.Calls[1].Layers[0].Tries(topology.S4xx, topology.Safe).N != 1 {
		t.Errorf("%s", f.YAML())
	}
}

func FuzzSettingsAreReadWithoutAPanic(f *testing.F) {
	f.Add("[default]\nmax_attempts = 4\n")
	f.Add("# x\nexport AWS_MAX_ATTEMPTS='4\nAWS_RETRY_MODE= \"\n")
	f.Add(deployment("{name: AWS_MAX_ATTEMPTS, value: 2}"))
	f.Fuzz(func(_ *testing.T, text string) {
		docs, _ := source.YAML("x.yaml", []byte(text))
		for _, d := range append(docs, source.Document{File: "config", Data: []byte(text)}) {
			if awssdk.Recognise(d) {
				awssdk.Read([]source.Document{d}, source.Assume{})
			}
		}
	})
}

func TestFilesOfVariablesAreRead(t *testing.T) {
	const byDefault = "3 (default of AWS SDKs in mode standard; shop/.env:1:16)"
	for text, want := range map[string]string{
		"# of the shop\nAWS_REGION=eu\nAWS_MAX_ATTEMPTS=5\n":    "5 (shop/.env:3:18)",
		"export AWS_MAX_ATTEMPTS=\"7\" # many\r\n":              "7 (shop/.env:1:26)",
		"AWS_MAX_ATTEMPTS=2 # few\nAWS_MAX_ATTEMPTS='4'":        "4 (shop/.env:2:19)",
		"AWS_RETRY_MODE=standard\n":                             byDefault,
		"AWS_RETRY_MODE=${MODE}\n\nURL=postgres://db/a?b=c#d\n": "unknown (template ${MODE}; shop/.env:1:16)",
	} {
		f := read(t, "shop/.env", text)
		if len(f.Calls) != 1 || f.Calls[0].From != "shop" || f.Calls[0].To != "aws" {
			t.Fatalf("%q: %s", text, f.YAML())
		}
		if got := f.Calls[0].Layers[0].Repeats[0].Tries.String(); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{
		"#!/bin/sh\nAWS_MAX_ATTEMPTS=5\nexec app\n", "FROM x\nENV AWS_MAX_ATTEMPTS=5\n", "AWS_REGION=eu\n",
		"Write this:\nAWS_MAX_ATTEMPTS=5\n",
	} {
		if awssdk.Recognise(source.Document{File: "a", Data: []byte(text)}) {
			t.Errorf("taken for a file of variables: %q", text)
		}
	}
}
