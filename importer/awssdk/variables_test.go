package awssdk_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/awssdk"
	"github.com/abate-go/abate/importer/source"
)

// said returns what files say together: "shop 5 (shop/.env:1:18)", the ways of one call with a bar between them.
func said(t *testing.T, files ...string) string {
	t.Helper()
	var docs []source.Document
	for i := 0; i < len(files); i += 2 {
		d := source.Document{File: files[i], Data: []byte(files[i+1])}
		all := []source.Document{d}
		if strings.HasSuffix(files[i], ".yaml") {
			all, _ = d.Parsed()
		}
		for _, d := range all {
			if awssdk.Recognise(d) {
				docs = append(docs, d)
			}
		}
	}
	form := awssdk.Read(docs, source.Assume{})
	var calls []string
	for _, c := range form.Calls {
		var ways []string
		for _, l := range c.Layers {
			ways = append(ways, l.Repeats[0].Tries.String())
			if (l.Choice != "") != (len(c.Layers) > 1) {
				t.Errorf("choice %q of %d layers", l.Choice, len(c.Layers))
			}
		}
		calls = append(calls, c.From+" "+strings.Join(ways, " | "))
	}
	return strings.Join(calls, ", ")
}

func TestAFileOfVariablesIsReadAsItsReadersDo(t *testing.T) {
	for text, want := range map[string]string{
		"AWS_MAX_ATTEMPTS = 5\n":                               "5 (shop/.env:1:20)",
		"\uFEFFAWS_MAX_ATTEMPTS=5\r\n":                         "5 (shop/.env:1:19)",
		"\uFEFF# ü\r\nÄ=1\r\n export AWS_MAX_ATTEMPTS='5'\r\n": "5 (shop/.env:3:27)",
		"AWS_MAX_ATTEMPTS=5\t# few\n":                          "5 (shop/.env:1:18)",
		"AWS_MAX_ATTEMPTS: 5\n":                                "5 (shop/.env:1:19)",
		"AWS_MAX_ATTEMPTS=\"5\n":                               "5 (shop/.env:1:19)",
		"AWS_MAX_ATTEMPTS=5\nAWS_MAX_ATTEMPTS=\n":              "",
		"aws_max_attempts=5\n":                                 "",
		"AWS_MAX_ATTEMPTS=\n":                                  "",
		"":                                                     "",
		"KEY=\"-----BEGIN\nAWS_MAX_ATTEMPTS=9 \\\"\n-----END\"\nAWS_MAX_ATTEMPTS=5\n": "5 (shop/.env:4:18)",
		"KEY='a\nAWS_MAX_ATTEMPTS=9\n'\n":                                             "",
		"KEY=it's\nAWS_MAX_ATTEMPTS=5\n":                                              "5 (shop/.env:2:18)",
		"PLAIN\nmy.key-2=1\nunset X\nAWS_MAX_ATTEMPTS=5\n":                            "5 (shop/.env:4:18)",
		"N=4\n" +
			"AWS_MAX_ATTEMPTS=\"${N}\"\n": "unknown (template ${N}; shop/.env:2:19)",
		"AWS_MAX_ATTEMPTS=$N\n": "unknown (template ${N}; shop/.env:1:18)",
		"AWS_MAX_ATTEMPTS=5#x\n": "unknown (\"5#x\" is no whole number from 0 up; " +
			"shop/.env:1:18)",
		strings.Repeat("A='\n", 1<<16) + "AWS_MAX_ATTEMPTS=5\n": "5 (shop/.env:65537:18)",
	} {
		if want != "" {
			want = "shop " + want
		}
		if got := said(t, "shop/.env", text); got != want {
			t.Errorf("%.80q: %s, want %s", text, got, want)
		}
	}
	if got := said(t, "shop/other.conf", "PLAIN\n"+
		"AWS_MAX_ATTEMPTS=5\n") + said(t, "a.yaml", "AWS_MAX_ATTEMPTS: 5\n"); got != "" {
		t.Errorf("taken for a file of variables: %s", got)
	}
}

func TestFilesOfOneFolderAreOneProgramThatReadsOneOfThem(t *testing.T) {
	got := said(t, "shop/.env", "AWS_MAX_ATTEMPTS=5\nAWS_RETRY_MODE=legacy\n", "shop/.env.local", "AWS_MAX_ATTEMPTS=7\n",
		"shop/.env.production", "AWS_RETRY_MODE=standard\n", "shop/.env.example", "AWS_MAX_ATTEMPTS=9\n",
		"cart/.env", "A=1\n", "cart/.env.local", "AWS_MAX_ATTEMPTS=2\n", "prod.env", "AWS_MAX_ATTEMPTS=3\n",
		"example.env", "AWS_MAX_ATTEMPTS=4\n")
	if want := "shop 5 (shop/.env:1:18) | 7 (shop/.env.local:1:18) | 5 (shop/.env:1:18), cart 2 (cart/.env.local:1:18), " +
		"prod 3 (prod.env:1:18)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAComposeFileSaysWhoseItsFilesOfVariablesAre(t *testing.T) {
	got := said(t, "shop/.env", "AWS_MAX_ATTEMPTS=5\n", "shop/b.env", "AWS_MAX_ATTEMPTS=7\n", "all.env",
		"AWS_MAX_ATTEMPTS=8\n", "shop/c.env", "AWS_MAX_ATTEMPTS=9\n", "shop/.env.example", "AWS_MAX_ATTEMPTS=6\n",
		"shop/d.env.sample", "AWS_MAX_ATTEMPTS=3\n", "shop/compose.yaml", `services:
  a: {image: x, env_file: .env}
  b: {image: y, env_file: [.env, {path: ./b.env}], environment: {AWS_RETRY_MODE: standard}}
  c: {image: z, env_file: [../all.env], environment: [AWS_MAX_ATTEMPTS=2]}
  d: {image: z, env_file: [none.env, ../all.env]}
  e: {image: z, env_file: .env.example}
`)
	if want := "a 5 (shop/.env:1:18), b 7 (shop/b.env:1:18), c 2 (shop/compose.yaml:4:55), d 8 (all.env:1:18), " +
		"e 6 (shop/.env.example:1:18), c 9 (shop/c.env:1:18)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
