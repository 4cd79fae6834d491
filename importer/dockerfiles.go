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
