package report_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// luminance is the relative luminance of a colour, as WCAG 2.2 defines it.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (math.Max(x, y) + 0.05) / (math.Min(x, y) + 0.05)
}

// themes returns the colours of the page by name, light and dark.
func themes(t *testing.T) map[string]map[string]string {
	t.Helper()
	light, dark, ok := strings.Cut(write(t, study(recovers)), "(prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("no dark theme")
	}
	out := map[string]map[string]string{}
	for name, text := range map[string]string{"light": light, "dark": dark} {
		out[name] = map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z0-9]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(text, -1) {
			out[name][m[1]] = m[2]
		}
	}
	if len(out["light"]) < 20 || len(out["light"]) != len(out["dark"]) {
		t.Fatalf("%d light colours, %d dark ones", len(out["light"]), len(out["dark"]))
	}
	return out
}

func TestColoursCanBeToldFromTheirGround(t *testing.T) {
	tests := []struct {
		front, ground string // lists
		least         float64
	}{
		{"ink mute", "bg fault", 4.5}, {"ink mute", "panel", 4.5},
		{"pass bad open none", "bg", 4.5},
		{"ink", "c0 c1 c2 c3 c4 c5", 4.5},
		{"good bad ink mute s1 s2 s3 s4 s5", "bg fault", 3},
		{"rule queue work open", "bg", 3},
		{"ink", "h1 h2 h3 h4 h5 h6", 3}, {"good", "spread", 3},
	}
	for theme, colours := range themes(t) {
		for _, tt := range tests {
			for _, front := range strings.Fields(tt.front) {
				for _, ground := range strings.Fields(tt.ground) {
					if c := contrast(t, colours[front], colours[ground]); c < tt.least {
						t.Errorf("%s: %s %s on %s %s has contrast %.2f, want at least %v", theme, front, colours[front], ground,
							colours[ground], c, tt.least)
					}
				}
			}
		}
	}
}

// seen turns a colour into what people with a missing kind of cone see (Viénot, Brettel and Mollon 1999), in linear
// light.
func seen(t *testing.T, hex string, m [3][3]float64) [3]float64 {
	t.Helper()
	var rgb, out [3]float64
	for i := range rgb {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		rgb[i] = math.Pow(float64(n)/255, 2.2)
	}
	for i := range out {
		for j := range rgb {
			out[i] += m[i][j] * rgb[j]
		}
		out[i] = math.Pow(math.Max(out[i], 0), 1/2.2)
	}
	return out
}

func TestColoursOfOneChartDifferForTheColourBlind(t *testing.T) {
	eyes := map[string][3][3]float64{
		"all cones":       {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		"no long cones":   {{0.11238, 0.88762, 0}, {0.11238, 0.88762, 0}, {0.00401, -0.00401, 1}},
		"no middle cones": {{0.29275, 0.70725, 0}, {0.29275, 0.70725, 0}, {-0.02234, 0.02234, 1}},
	}
	for theme, colours := range themes(t) {
		for eye, matrix := range eyes {
			for _, pair := range []string{
				"good bad", "good mute", "bad mute", "bad s1", "bad s2", "good rule", "h1 h6", "c0 c5", "queue good", "work bad",
			} {
				a, b, _ := strings.Cut(pair, " ")
				x, y := seen(t, colours[a], matrix), seen(t, colours[b], matrix)
				distance := math.Sqrt(math.Pow(x[0]-y[0], 2) + math.Pow(x[1]-y[1], 2) + math.Pow(x[2]-y[2], 2))
				if distance < 0.12 {
					t.Errorf("%s, %s: %s and %s are %.2f apart, want at least 0.12", theme, eye, a, b, distance)
				}
			}
		}
	}
}
