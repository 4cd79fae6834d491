package importer

import (
	"path"
	"regexp"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/importer/workloads"
	"github.com/abate-go/abate/topology"
)

var (
	dependency = regexp.MustCompile(`(?s)<dependency>.*?</dependency>`)
	artifact   = regexp.MustCompile(`<artifactId>\s*resilience4j-([\w-]+)\s*</artifactId>`)
	version    = regexp.MustCompile(`<version>\s*([^<\s]+)\s*</version>`)
	coordinate = regexp.MustCompile(`io\.github\.resilience4j:resilience4j-([\w-]+):(\$?\{?[\w.]+\}?)`)
	catalog    = regexp.MustCompile(`(?m)^[ \t]*resilience4j[\w-]*[ \t]*=[ \t]*"(\d+\.\d+(?:\.\d+)?)"`)
	train      = regexp.MustCompile(`(?i)\bspring-?cloud[.-]?version\b["'>\s,=]+((?:Greenwich|Hoxton|20\d\d)\.[\w.-]+)`)
	number     = regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`)
	from       = regexp.MustCompile(`(?mi)^FROM[ \t]+(?:--platform=\S+[ \t]+)?(\S+)`)
)

// versions returns the versions of products that files name which say how a program is built.
func versions(files []File) (found []source.Built) {
	add := func(product, v string, d source.Document, offset int) {
		line := 1 + strings.Count(string(d.Data[:offset]), "\n")
		found = append(found, source.Built{Product: product, Folder: path.Dir(d.File), Apart: product == "resilience4j",
			Version: topology.Write(v, d.At(line, 1))})
	}
	for _, f := range files {
		d := source.Document{File: f.Name, Data: f.Data}
		switch base := strings.ToLower(path.Base(f.Name)); {
		case isDockerfile(base):
			for _, m := range from.FindAllSubmatchIndex(f.Data, -1) {
				if product, v, ok := workloads.Tagged(string(f.Data[m[2]:m[3]])); ok {
					add(product, v, d, m[2])
				}
			}
		case base == "pom.xml", base == "libs.versions.toml", strings.HasSuffix(base, ".gradle"),
			strings.HasSuffix(base, ".gradle.kts"):
			if v, offset := resilience4j(f.Data); v != "" {
				add("resilience4j", v, d, offset)
			} else if v, offset = managed(f.Data); v != "" {
				add("resilience4j", "1.7", d, offset)
				is := &found[len(found)-1].Version
				*is = topology.Inherit(is.V, is.At, "Spring Cloud "+v)
			}
		}
	}
	return found
}

// managed returns the release of Spring Cloud that a build names, and where, if it is one that brings resilience4j 1:
// those before 2022.0. Later ones bring 2, which is what is assumed. It is "" for none.
func managed(data []byte) (release string, offset int) {
	m := train.FindSubmatchIndex(data)
	if m == nil {
		return "", 0
	}
	if release = string(data[m[2]:m[3]]); release >= "2022" && release < "3" {
		return "", 0
	}
	return release, m[2]
}

// resilience4j returns the version of resilience4j that a build of Maven or Gradle names, and where: that of the
// module for Spring, which reads the configuration, before that of others. It is "" where none is named.
func resilience4j(data []byte) (found string, offset int) {
	text := string(data)
	take := func(module, v string, at int) {
		name := strings.Trim(v, "${}")
		if name != v { // a property of this file
			is := regexp.MustCompile(`(?:<` + regexp.QuoteMeta(name) + `>\s*|\b` + regexp.QuoteMeta(name) +
				`\s*=\s*["'])([\w.-]+)`)
			if m := is.FindStringSubmatch(text); m != nil {
				v = m[1]
			}
		}
		if number.MatchString(v) && (found == "" || strings.HasPrefix(module, "spring")) {
			found, offset = v, at
		}
	}
	for _, block := range dependency.FindAllStringIndex(text, -1) {
		of := text[block[0]:block[1]]
		a, v := artifact.FindStringSubmatch(of), version.FindStringSubmatchIndex(of)
		if a != nil && v != nil && strings.Contains(of, "io.github.resilience4j") {
			take(a[1], of[v[2]:v[3]], block[0]+v[2])
		}
	}
	for _, m := range coordinate.FindAllStringSubmatchIndex(text, -1) {
		take(text[m[2]:m[3]], text[m[4]:m[5]], m[4])
	}
	for _, m := range catalog.FindAllStringSubmatchIndex(text, -1) {
		take("", text[m[2]:m[3]], m[2])
	}
	return found, offset
}
