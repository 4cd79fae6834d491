package importer

import (
	"path"
	"regexp"
	"strings"
)

// isDockerfile reports whether a file, by its name in lower case, says how an image is built.
func isDockerfile(base string) bool {
	return base == "dockerfile" || strings.HasPrefix(base, "dockerfile.") || strings.HasSuffix(base, ".dockerfile")
}

var (
	continued = regexp.MustCompile(`\\[ \t]*\r?\n`)
	setsOne   = regexp.MustCompile(`(?mi)^[ \t]*ENV[ \t]+(\w+)[ \t]+([^=\s]\S*)[ \t]*$`)
	setsMany  = regexp.MustCompile(`(?mi)^[ \t]*ENV[ \t]+(\w+=.*)$`)
	pair      = regexp.MustCompile(`(\w+)=("[^"]*"|'[^']*'|\S*)`)
)

// capitals are variables of the environment in a configuration of nginx, whose own are lower case.
var capitals = regexp.MustCompile(`\$\{?([A-Z][A-Z0-9_]*)\b`)

// filledInBy returns the service whose environment fills in a configuration: the one that sets most of the variables in
// it, and two at least. It is "" for none, and where two set as many.
func filledInBy(data []byte, environments map[string]map[string]string) string {
	names := map[string]bool{}
	for _, m := range capitals.FindAllSubmatch(data, -1) {
		names[string(m[1])] = true
	}
	service, most := "", 1
	for s, set := range environments {
		n := 0
		for name := range names {
			if set[name] != "" {
				n++
			}
		}
		switch {
		case n > most:
			service, most = s, n
		case n == most && n > 1:
			service = ""
		}
	}
	return service
}

// defaults returns the variables that Dockerfiles set, by their folders. What two Dockerfiles of a folder set
// differently is left out, and so are values that hold a variable.
func defaults(files []File) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, f := range files {
		if !isDockerfile(strings.ToLower(path.Base(f.Name))) {
			continue
		}
		folder, text := path.Dir(f.Name), continued.ReplaceAllString(string(f.Data), " ")
		if all[folder] == nil {
			all[folder] = map[string]string{}
		}
		found := setsOne.FindAllStringSubmatch(text, -1)
		for _, line := range setsMany.FindAllStringSubmatch(text, -1) {
			found = append(found, pair.FindAllStringSubmatch(line[1], -1)...)
		}
		set := map[string]string{}
		for _, m := range found {
			set[m[1]] = strings.Trim(m[2], `"'`)
		}
		for name, value := range set {
			if was, again := all[folder][name]; strings.Contains(value, "$") || again && was != value {
				value = ""
			}
			all[folder][name] = value
		}
	}
	return all
}
