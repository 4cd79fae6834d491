package tidy

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// readmeWords is how long the README may be. What does not fit belongs on a page under docs.
const readmeWords = 1200

var (
	mdLink     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	headingEnd = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	metricName = regexp.MustCompile("`((?:abate|circuit_breaker|http_client|grpc_client|rate_limit|shed)_[a-z_]+)[`{]")
	makeTarget = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	makeUse    = regexp.MustCompile("(?m)(?:^|`)make ([a-z][a-z-]*)")
	goRun      = regexp.MustCompile(`\bgo (?:run|install) (\./[a-z/]+)`)
	fileUse    = regexp.MustCompile(`(?:^|\s)((?:examples|scenarios|deploy)/[\w./-]+\.(?:yaml|lua))`)
)

// pages are the Markdown files that people read.
func (t *tree) pages() []textFile {
	var pages []textFile
	for _, f := range t.texts {
		if path.Ext(f.path) == ".md" && !slices.Contains(strings.Split(f.path, "/"), "testdata") {
			pages = append(pages, f)
		}
	}
	return pages
}

// prose replaces code by nothing and keeps the lines.
func prose(body []byte) []string {
	fenced := false
	lines := strings.Split(string(body), "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced, lines[i] = !fenced, ""
		case fenced:
			lines[i] = ""
		default:
			lines[i] = inlineCode.ReplaceAllStringFunc(line, func(code string) string {
				return strings.NewReplacer("`", "", "[", "", "]", "").Replace(code)
			})
		}
	}
	return lines
}

// anchors are what a link may name behind # on a page, as GitHub makes them from the headings.
func anchors(body []byte) map[string]bool {
	found := make(map[string]bool)
	for _, line := range prose(body) {
		text := strings.TrimLeft(line, "#")
		if level := len(line) - len(text); level == 0 || level > 6 || !strings.HasPrefix(text, " ") {
			continue
		}
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
				return unicode.ToLower(r)
			}
			return -1
		}, headingEnd.ReplaceAllString(strings.TrimSpace(text), "$1"))
		name := slug
		for n := 1; found[name]; n++ {
			name = fmt.Sprintf("%s-%d", slug, n)
		}
		found[name] = true
	}
	return found
}

// link is a link of a page to something in the repository.
type link struct {
	line     int
	target   string // from the root
	fragment string
	written  string
}

// links returns the links of a page that do not leave the repository.
func links(f textFile) []link {
	var found []link
	for i, line := range prose(f.body) {
		for _, m := range mdLink.FindAllStringSubmatch(line, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			target, fragment, _ := strings.Cut(m[1], "#")
			if target == "" {
				target = f.path
			} else {
				target = path.Join(path.Dir(f.path), target)
			}
			found = append(found, link{i + 1, target, fragment, m[1]})
		}
	}
	return found
}

// brokenLinks finds links of pages to files, folders and headings that do not exist.
func brokenLinks(t *tree) []finding {
	there := map[string]bool{".": true}
	headings := make(map[string]map[string]bool)
	for _, f := range t.texts {
		for name := f.path; name != "."; name = path.Dir(name) {
			there[name] = true
		}
	}
	for _, f := range t.pages() {
		headings[f.path] = anchors(f.body)
	}
	var found []finding
	for _, f := range t.pages() {
		for _, l := range links(f) {
			switch {
			case !there[l.target]:
				found = append(found, finding{f.path, l.line, fmt.Sprintf("the link %s leads nowhere", l.written)})
			case l.fragment != "" && !headings[l.target][l.fragment]:
				text := fmt.Sprintf("the link %s: %s has no such heading", l.written, l.target)
				found = append(found, finding{f.path, l.line, text})
			}
		}
	}
	return found
}

// unreachablePages finds pages under docs to which no way of links leads from the README.
func unreachablePages(t *tree) []finding {
	pages := make(map[string]textFile)
	for _, f := range t.pages() {
		pages[f.path] = f
	}
	reached := map[string]bool{"README.md": true}
	for queue := []string{"README.md"}; len(queue) > 0; queue = queue[1:] {
		for _, l := range links(pages[queue[0]]) {
			for _, name := range []string{l.target, path.Join(l.target, "README.md")} {
				if _, ok := pages[name]; ok && !reached[name] {
					reached[name] = true
					queue = append(queue, name)
				}
			}
		}
	}
	var found []finding
	for _, f := range t.pages() {
		if strings.HasPrefix(f.path, "docs/") && !reached[f.path] {
			found = append(found, finding{f.path, 1, "no link leads here from README.md: add one to docs/README.md"})
		}
	}
	return found
}

// longReadme reports a README that has become a manual.
func longReadme(t *tree) []finding {
	for _, f := range t.texts {
		if n := len(strings.Fields(string(f.body))); f.path == "README.md" && n > readmeWords {
			text := fmt.Sprintf("%d words, at most %d: move something to a page under docs", n, readmeWords)
			return []finding{{f.path, 1, text}}
		}
	}
	return nil
}

// shapelessPages finds pages about policies that leave out a question which each of them answers.
func shapelessPages(t *tree) []finding {
	var found []finding
	for _, f := range t.pages() {
		if path.Dir(f.path) != "docs/policies" || path.Base(f.path) == "README.md" {
			continue
		}
		for _, part := range []string{"**What.**", "**When.**", "**When not.**", "## Defaults", "## Metrics", "## Traps"} {
			if !strings.Contains(string(f.body), "\n"+part) {
				found = append(found, finding{f.path, 1, "the page has no " + part})
			}
		}
	}
	return found
}

// missingMetrics finds metrics that a page names and internal/metrics does not have. Those of the policies are in
// internal/registry, those of the proxy itself beside it.
func missingMetrics(t *tree) []finding {
	var source strings.Builder
	for _, f := range t.texts {
		ours := strings.HasPrefix(f.path, "internal/metrics/") || strings.HasPrefix(f.path, "internal/registry/") ||
			path.Dir(f.path) == "proxy" && strings.HasSuffix(f.path, "metrics.go")
		if ours && !strings.HasSuffix(f.path, "_test.go") {
			source.Write(f.body)
		}
	}
	var found []finding
	for _, f := range t.pages() {
		if !strings.HasPrefix(f.path, "docs/") && f.path != "README.md" {
			continue
		}
		for _, at := range metricName.FindAllSubmatchIndex(f.body, -1) {
			name := string(f.body[at[2]:at[3]])
			whole := regexp.MustCompile(`_(?:bucket|sum|count)$`).ReplaceAllString(name, "")
			if s := source.String(); !strings.Contains(s, `"`+name+`"`) && !strings.Contains(s, `"`+whole+`"`) {
				line := 1 + strings.Count(string(f.body[:at[2]]), "\n")
				found = append(found, finding{f.path, line, fmt.Sprintf("internal/metrics and the proxy have no metric %s", name)})
			}
		}
	}
	return found
}

// missingCommands finds commands of pages whose program, make target or file does not exist.
func missingCommands(t *tree) []finding {
	there, targets := map[string]bool{}, map[string]bool{}
	for _, f := range t.texts {
		there[f.path], there[path.Dir(f.path)] = true, true
		if f.path == "Makefile" {
			for _, m := range makeTarget.FindAllSubmatch(f.body, -1) {
				targets[string(m[1])] = true
			}
		}
	}
	var found []finding
	for _, f := range t.pages() {
		if !strings.HasPrefix(f.path, "docs/") && f.path != "README.md" {
			continue
		}
		look := func(pattern *regexp.Regexp, exists func(string) bool) {
			for _, at := range pattern.FindAllSubmatchIndex(f.body, -1) {
				if name := string(f.body[at[2]:at[3]]); !exists(name) {
					line := 1 + strings.Count(string(f.body[:at[2]]), "\n")
					found = append(found, finding{f.path, line, fmt.Sprintf("a command names %s, which is not there", name)})
				}
			}
		}
		look(makeUse, func(name string) bool { return targets[name] })
		look(goRun, func(name string) bool { return there[path.Clean(name)] })
		look(fileUse, func(name string) bool { return there[name] })
	}
	return found
}

func TestLinksLeadSomewhere(t *testing.T) { holds(t, brokenLinks) }

func TestPagesAreReachedFromTheReadme(t *testing.T) { holds(t, unreachablePages) }

func TestReadmeIsShort(t *testing.T) { holds(t, longReadme) }

func TestPagesOfPoliciesAnswerTheSameQuestions(t *testing.T) { holds(t, shapelessPages) }

func TestMetricsOfThePagesExist(t *testing.T) { holds(t, missingMetrics) }

func TestCommandsOfThePagesExist(t *testing.T) { holds(t, missingCommands) }

func TestLinkRuleFails(t *testing.T) {
	const page = "# A `b` c\n\n## Two, three\n## Two, three\n"
	provoke(t, brokenLinks, []example{
		{"a file that is there", "", source{"a.md": "[b](docs/b.md)", "docs/b.md": "[up](../a.md)"}},
		{"one that is not", "a.md:2: error: the link b.md leads nowhere", source{"a.md": "x\n[b](b.md)"}},
		{"a folder", "", source{"a.md": "[b](docs) [b](docs/)", "docs/b.md": ""}},
		{"outside the repository", "a.md:1: error: the link ../b leads nowhere", source{"a.md": "[b](../b)"}},
		{"a heading", "", source{"a.md": "[b](b.md#a-b-c) [c](b.md#two-three-1)", "b.md": page}},
		{"a heading of its own", "", source{"a.md": "# X\n[b](#x)"}},
		{"a heading that is not there", "a.md:1: error: the link b.md#d: b.md has no such heading",
			source{"a.md": "[b](b.md#d)", "b.md": page}},
		{"a heading in code", "a.md:1: error: the link b.md#d: b.md has no such heading",
			source{"a.md": "[b](b.md#d)", "b.md": "```\n# d\n```\n"}},
		{"code", "", source{"a.md": "`[a](b)`\n```\n[b](b.md)\n```\n"}},
		{"somewhere else", "", source{"a.md": "[b](https://example.com/b#c) [m](mailto:a@example.com)"}},
	})
}

func TestReachRuleFails(t *testing.T) {
	provoke(t, unreachablePages, []example{
		{"by an index", "", source{"README.md": "[d](docs)", "docs/README.md": "[a](a.md)", "docs/a.md": ""}},
		{"not at all", "docs/a.md:1: error: no link leads here", source{"README.md": "[d](b.md)", "docs/a.md": "[a](a.md)"}},
		{"outside of docs", "", source{"README.md": "x", "a.md": ""}},
	})
}

func TestReadmeRuleFails(t *testing.T) {
	provoke(t, longReadme, []example{
		{"enough", "", source{"README.md": strings.Repeat("word ", readmeWords)}},
		{"too much", "README.md:1: error: 1201 words, at most 1200",
			source{"README.md": strings.Repeat("word\n", readmeWords+1)}},
		{"another page", "", source{"docs/README.md": strings.Repeat("word ", 2*readmeWords)}},
	})
}

func TestPageShapeRuleFails(t *testing.T) {
	const page = "# X\n\n**What.** a\n\n**When.** b\n\n**When not.** c\n\n## Defaults\n\n## Metrics\n"
	provoke(t, shapelessPages, []example{
		{"all parts", "", source{"docs/policies/a.md": page + "\n## Traps\n"}},
		{"no traps", "docs/policies/a.md:1: error: the page has no ## Traps", source{"docs/policies/a.md": page}},
		{"the index", "", source{"docs/policies/README.md": ""}},
	})
}

func TestMetricRuleFails(t *testing.T) {
	prom := "package p\n\nconst a, b = \"abate_calls_total\", \"abate_delay_seconds\"\n"
	provoke(t, missingMetrics, []example{
		{"one that is there", "", source{"docs/a.md": "`abate_calls_total{x}`", "internal/metrics/a.go": prom}},
		{"a part of a histogram", "", source{"docs/a.md": "`abate_delay_seconds_bucket`", "internal/metrics/a.go": prom}},
		{"one that is not", "docs/a.md:2: error: internal/metrics and the proxy have no metric abate_call_total",
			source{"docs/a.md": "x\n`abate_call_total`", "internal/metrics/a.go": prom}},
	})
}

func TestCommandRuleFails(t *testing.T) {
	there := source{"Makefile": "bench: x\n\techo\n", "cmd/a/main.go": "package main\n", "examples/p.yaml": "a: b\n"}
	with := func(page string) source {
		s := source{"docs/a.md": page}
		for name, body := range there {
			s[name] = body
		}
		return s
	}
	provoke(t, missingCommands, []example{
		{"all there", "", with("`make bench`\n```\ngo run ./cmd/a -c examples/p.yaml\nmake bench\n```\nThese make it.")},
		{"a target that is not", "docs/a.md:1: error: a command names speed", with("`make speed`")},
		{"a program that is not", "docs/a.md:2: error: a command names ./cmd/b", with("\n`go run ./cmd/b x`")},
		{"a file that is not", "docs/a.md:1: error: a command names examples/q.yaml",
			with("`go run ./cmd/a examples/q.yaml`")},
	})
}
