package rawjson

import (
	"strings"
	"testing"
)

func TestDoubleNumbers(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{` { "b" : [ true , false , null , "" ] , "a" : { } , "" : [ ] } `, `{"":[],"a":{},"b":[true,false,null,""]}`},
		// Array indices first, by number; what only looks like one is a name.
		{`{"b":1,"10":2,"9":3,"09":4,"0":5,"4294967294":6,"4294967295":7,"-1":8,"1.0":9,"99999999999":10}`,
			`{"0":5,"9":3,"10":2,"4294967294":6,"-1":8,"09":4,"1.0":9,"4294967295":7,"99999999999":10,"b":1}`},
		// The last of a repeated name counts, also where the name is written in two ways.
		{`{"a":1,"\u0061":2,"b":3,"a":4}`, `{"a":4,"b":3}`},
		{`{"z":{"y":1,"x":{"2":1,"1":2}},"a":[{"d":1,"c":2}]}`, `{"a":[{"c":2,"d":1}],"z":{"x":{"1":2,"2":1},"y":1}}`},
		// Integers keep their digits, whatever they are.
		{`[0,-0,-7,9007199254740993,123456789012345678901234567890]`,
			`[0,0,-7,9007199254740993,123456789012345678901234567890]`},
		// Everything else is a double as JavaScript prints it.
		{`[1.0,-0.0,1e0,100e-2,1.5e3,-2.50]`, `[1,0,1,1,1500,-2.5]`},
		{`[1e20,1e21,1E+22,123456789012345678901.5,1.7976931348623157e308]`,
			`[100000000000000000000,1e+21,1e+22,123456789012345680000,1.7976931348623157e+308]`},
		{`[1e-6,1e-7,1.5e-7,0.000001234,0.0000001234,5e-324,1e-10]`,
			`[0.000001,1e-7,1.5e-7,0.000001234,1.234e-7,5e-324,1e-10]`},
		{`[1e400,-1e400,1e-400,-1e-400]`, `[null,null,0,0]`},
		// Short escapes, lower hex for the other controls, and nothing else escaped.
		{`"\u0008\u0009\u000A\u000b\u000C\u000D\u001F\u007f\/\u003c\"\\\u00E9"`,
			"\"\\b\\t\\n\\u000b\\f\\r\\u001f\u007f/<\\\"\\\\é\""},
		{`"\ud83d\ude00 \ud83d \ude00 \ud83d\u0041 \uD83D\ud83d\uDE00"`, `"😀 \ud83d \ude00 \ud83dA \ud83d😀"`},
		// Half a pair sorts among code points: above U+D7FF, below U+E000.
		{`{"\ue000":1,"\ud800":2,"\ud7ff":3}`, "{\"\ud7ff\":3,\"\\ud800\":2,\"\ue000\":1}"},
	} {
		got, ok := AppendCanonical(nil, []byte(tt.in), DoubleNumbers)
		if !ok || string(got) != tt.want {
			t.Errorf("canonical %s\n got %s %v\nwant %s", tt.in, got, ok, tt.want)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, in := range []string{
		``, ` `, `{`, `}`, `[`, `]`, `[1`, `[1,`, `[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`,
		`{a:1}`, `{1:1}`, `{"a" 1}`,
		`01`, `-`, `+1`, `1.`, `.1`, `1e`, `1e+`, `--1`, `0x1`, `NaN`, `Infinity`, `tru`, `nulll`,
		`True`, `1 1`, `{}{}`,
		`"`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\ud800\u12`, "\"\n\"", "\"\\\n\"", "\"a\\n\x01\"", "\"\xff\"",
		"\"\xed\xa0\x80\"", "\ufeff1",
		strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1),
	} {
		if got, ok := AppendCanonical(nil, []byte(in), DoubleNumbers); ok {
			t.Errorf("canonical %.30q = %q, want no JSON", in, got)
		}
		if Valid([]byte(in)) == nil {
			t.Errorf("valid %.30q, want no JSON", in)
		}
	}
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	if got, ok := AppendCanonical(nil, []byte(deep), DoubleNumbers); !ok || string(got) != deep {
		t.Errorf("JSON nested %d deep is refused", MaxDepth)
	}
}
