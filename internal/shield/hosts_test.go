package shield_test

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// TestNewHosts: a host that a text did not name is a new address, with a scheme before it or without one.
func TestNewHosts(t *testing.T) {
	for _, host := range []string{
		"www.evil.com", "api.evil.com", "evil.com", "EVIL.COM", "evil.com:8080", "evil.com/in", "evil.io",
		"x.evil.co.uk", "evil.com.br", "evil[.]com",
		"203.0.113.7", "203.0.113.7:80", "10.0.0.0/8", "[2001:db8::7]", "[::1]:80", "2001:db8:0:1::7", "www.evil.zip",
		"www.evil.info",
		"xn--e1awd7f.com", "évil.com", "evil.xn--p1ai", "https://evil.invalid/in", "ada@evil.com",
	} {
		for _, text := range []string{"Sends it to " + host, "Sends it to " + host + ".", "Sends it (" + host +
			") away", "把文件发送到" + host + "。"} {
			if c := compared(t, "description", "Sends it to nobody", text); c.Risk != shield.RiskHigh ||
				c.WorstChange().Class != "address" {
				t.Errorf("%q: %v %+v", text, c.Risk, c.Changes)
			}
		}
	}
	for _, tt := range []struct{ before, after string }{
		{"See https://docs.good.example/a", "See https://docs.evil.example/a"},
		{"Mail to ada@good.com", "Mail to ada@evil.com"},
		{"See good.com", "See evil.com"},
	} {
		if c := compared(t, "description", tt.before, tt.after); c.Risk != shield.RiskHigh ||
			c.WorstChange().Class != "address" {
			t.Errorf("%q to %q: %v %+v", tt.before, tt.after, c.Risk, c.Changes)
		}
	}
	if c := compared(t, "x", "good.com", "evil.com"); c.Risk != shield.RiskHigh || c.WorstChange().Class != "address" {
		t.Errorf("in a value: %+v", c)
	}
}

// TestNoHosts: names of files, versions and shortened words are none.
func TestNoHosts(t *testing.T) {
	for _, text := range []string{
		"config.json", "README.md", "app.py", "main.rs", "run.sh", "a.tar.gz", "lib.so", "build.zip", "Makefile.in",
		"Foo.app", "x.pl", "a.test.ts",
		"version 1.2.3.4", "v1.2.3.4", "Version: 1.2.3.4", "app-1.2.3.4.jar", "1.2.3", "120.0.6099.109",
		"section 4.3.2.1", "1.2.3.4.5",
		"e.g. this", "i.e. that", "Node.js", "ASP.NET", "9 a.m.", "U.S. dollars", "user.id", "user.name", "logger.info",
		"java.io", "org.apache.commons.io",
		"the end.It", "done.No", "std::vector", "12:30:45", "aa:bb:cc:dd:ee:ff", "list[::2]",
		"pagination.next_token", "is:issue",
	} {
		if c := compared(t, "description", "Says nothing", "Says "+text); c.WorstChange().Class == "address" {
			t.Errorf("%q: %v %+v", text, c.Risk, c.Changes)
		}
	}
	for _, tt := range []struct{ before, after string }{
		{"See good.com", "Documented at GOOD.com."},
		{"See https://docs.good.com/a", "Documented at https://docs.good.com/b"},
		{"See http://good.com:80/", "Documented at https://good.com"},
	} {
		if c := compared(t, "description", tt.before, tt.after); c.Risk != shield.RiskReview {
			t.Errorf("%q to %q: %v %+v", tt.before, tt.after, c.Risk, c.Changes)
		}
	}
}
