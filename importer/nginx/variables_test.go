package nginx_test

import (
	"slices"
	"strings"
	"testing"
)

func TestAVariableLeadsWhereverTheFileSays(t *testing.T) {
	const http = `http { upstream orders { server o1:80; server o2:80; }
 map $http_x_version $pool { hostnames; default orders; v2 "stock"; }
 split_clients $request_id $ab { 10% canary; * orders; }
 geo $remote_addr $area { ranges; default eu; 10.0.0.0/8 us; }
 map $uri $loop { default $loop; }
 server { set $outer inv; `
	for location, want := range map[string]string{
		"set $u http://orders; proxy_pass $u;":                           "orders",
		"set $u pay.svc; proxy_pass http://$u:80$request_uri;":           "pay",
		"set $u a; set $u b; proxy_pass http://$u;":                      "b",
		"set $u a; if ($arg_x) { set $u b; } proxy_pass http://$u;":      "a b",
		"proxy_pass http://$outer;":                                      "inv",
		"proxy_pass http://$pool;":                                       "orders stock",
		"set $p $pool; proxy_pass http://${p}:80;":                       "orders stock",
		"proxy_pass http://$ab;":                                         "canary orders",
		"proxy_pass http://$area.example.com$uri;":                       "eu.example.com us.example.com",
		"proxy_pass http://$nowhere;":                                    "F702 http://$nowhere",
		"set $z $http_x_where; proxy_pass http://$z;":                    "F702 http://$z",
		"proxy_pass http://$loop;":                                       "F702 http://$loop",
		"set $u a; if ($arg_x) { set $u $arg_x; } proxy_pass http://$u;": "a F702 http://$arg_x",
		"set $a $b$b; set $b $c$c; set $c $a$a; proxy_pass http://$a;":   "F702",
	} {
		f := read(t, old(), "x.conf", http+"location / { "+location+" } } }")
		var got []string
		for _, c := range f.Calls {
			got = append(got, c.To)
		}
		slices.Sort(got)
		for _, r := range f.Remarks {
			got = append(got, r.Rule+" "+strings.Fields(r.Text)[1])
		}
		if s := strings.Join(got, " "); s != want && (want != "F702" || !strings.HasPrefix(s, want)) {
			t.Errorf("%s: %s, want %s", location, s, want)
		}
	}
}

func TestEachPlaceThatAVariableLeadsToIsALayerOfItsOwn(t *testing.T) {
	f := read(t, old(), "x.conf", "http { map $arg_v $pool { default orders; v2 stock; }\n"+
		"server { location /a { proxy_pass http://$pool; } } }")
	if len(f.Calls) != 2 {
		t.Fatalf("%s", f.YAML())
	}
	for _, c := range f.Calls {
		if l := c.Layers[0]; l.Match.Other != "where http://$pool is http://"+c.To || l.Match.Path != "/a*" {
			t.Errorf("%s: %+v", c.To, l.Match)
		}
	}
}

func TestAnUpgradeIsThatOfTheBlockThatSetsHeaders(t *testing.T) {
	const upgrade = "proxy_set_header Upgrade $http_upgrade;"
	for conf, want := range map[string]bool{
		"server { location / { " + upgrade + " proxy_pass http://a:1; } }":                          true,
		"server { " + upgrade + " location / { proxy_pass http://a:1; } }":                          true,
		"server { " + upgrade + " location / { proxy_set_header Host x; proxy_pass http://a:1; } }": false,
		"server { location / { proxy_set_header Upgrade ''; proxy_pass http://a:1; } }":             false,
		"server { location / { proxy_set_header X-Upgrade y; proxy_pass http://a:1; } }":            false,
	} {
		if got := read(t, old(), "x.conf", conf).Calls[0].Layers[0].Upgrades.Or(false); got != want {
			t.Errorf("%s: %v", conf, got)
		}
	}
}
