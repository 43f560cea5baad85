package tui

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

func encoded(t *testing.T, width, height int) []byte {
	t.Helper()
	p := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black, color.White})
	for i := range p.Pix {
		p.Pix[i] = byte(i*i/7) & 1
	}
	var b bytes.Buffer
	if err := gif.Encode(&b, p, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// imageLines returns the lines of a result with one image.
func imageLines(tr *transcript, image drawbridge.Image) []string {
	result := &drawbridge.ToolResult{Images: []drawbridge.Image{image}}
	return tr.imageLines(result.Images, tr.graphics.pictures(result))
}

func TestGraphicsOf(t *testing.T) {
	for env, want := range map[string]graphics{"TERM=xterm-256color": noGraphics, "KITTY_WINDOW_ID=1": kittyGraphics,
		"TERM_PROGRAM=ghostty": kittyGraphics, "TERM_PROGRAM=iTerm.app": itermGraphics, "TERM_PROGRAM=WezTerm": itermGraphics,
		"TERM=xterm-kitty TMUX=/tmp/x": noGraphics, "": noGraphics} {
		if got := graphicsOf(strings.Fields(env)); got != want {
			t.Errorf("%q: %d, want %d", env, got, want)
		}
	}
}

// TestPicture shows a picture with each protocol: it has the rows and columns that it says, and a PNG.
func TestPicture(t *testing.T) {
	for _, row := range []struct {
		protocol            graphics
		width, height, rows int
		size                string
		sent                image.Point
	}{
		{kittyGraphics, 80, 80, 10, "c=10,r=5", image.Pt(80, 80)}, {kittyGraphics, 4000, 500, 10, "c=60,r=3", image.Pt(480, 60)},
		{kittyGraphics, 100, 4000, 10, "c=1,r=10", image.Pt(6, 240)}, {kittyGraphics, 3, 2, 10, "c=1,r=1", image.Pt(3, 2)},
		{itermGraphics, 80, 80, 10, "width=10;height=5", image.Pt(80, 80)}, {kittyGraphics, 80, 80, 3, "c=6,r=3", image.Pt(80, 80)},
		{kittyGraphics, 4000, 1, 10, "c=60,r=1", image.Pt(480, 1)}, {kittyGraphics, 1, 4000, 10, "c=1,r=10", image.Pt(1, 240)},
	} {
		tr := newTranscript(newMarkdown(painter{}, false), 80, nil)
		tr.graphics, tr.pictureRows = row.protocol, row.rows
		lines := imageLines(tr, drawbridge.Image{MIMEType: "image/gif", Data: encoded(t, row.width, row.height)})
		if len(lines) != 2 || !strings.Contains(lines[1], row.size) || ansi.StringWidth(strings.TrimRight(lines[1], "\n")) > 2 {
			t.Errorf("%dx%d: %.80q, want %s", row.width, row.height, lines, row.size)
			continue
		}
		var code strings.Builder
		for part := range strings.SplitSeq(strings.NewReplacer("\x1b\\", "\x00", "\x07", "\x00", "\x1b_G", "\x00", "\x1b]", "\x00").Replace(lines[1]), "\x00") {
			if i := strings.LastIndexAny(part, ";:"); i >= 0 {
				code.WriteString(part[i+1:])
			}
		}
		data, err := base64.StdEncoding.DecodeString(code.String())
		if err != nil {
			t.Fatal(err)
		}
		if c, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || image.Pt(c.Width, c.Height) != row.sent {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

// TestPicturesThatAreNotShown has what stays a line of text.
func TestPicturesThatAreNotShown(t *testing.T) {
	large := encoded(t, 2100, 2000)
	good := encoded(t, 10, 10)
	for name, row := range map[string]struct {
		protocol graphics
		rows     int
		data     []byte
	}{"no protocol": {noGraphics, 10, good}, "no room": {kittyGraphics, 1, good}, "too large": {kittyGraphics, 10, large},
		"no picture": {kittyGraphics, 10, []byte("\x1b_Ga=T;AAAA\x1b\\")}, "cut off": {kittyGraphics, 10, good[:len(good)-5]}} {
		tr := newTranscript(newMarkdown(painter{}, false), 80, nil)
		tr.graphics, tr.pictureRows = row.protocol, row.rows
		lines := imageLines(tr, drawbridge.Image{MIMEType: "image/\x1b]0;x\x07gif", Data: row.data})
		if len(lines) != 1 || strings.ContainsRune(lines[0], '\x1b') {
			t.Errorf("%s: %.80q", name, lines)
		}
	}
}

// TestPicturesOfAResult shows the first pictures of a result, made small, and names the others.
func TestPicturesOfAResult(t *testing.T) {
	content := []any{map[string]any{"type": "text", "text": "Six images."}}
	for range 6 {
		content = append(content, map[string]any{"type": "image", "mimeType": "image/gif", "data": encoded(t, 2000, 1500)})
	}
	raw, err := json.Marshal(map[string]any{"content": content})
	if err != nil {
		t.Fatal(err)
	}
	box := &tools{call: func(context.Context, drawbridge.ToolCall, func(agent.CallUpdate)) (agent.CallOutcome, error) {
		return agent.CallOutcome{Result: drawbridge.Result{Raw: raw}, Server: "srv", Tool: "tool"}, nil
	}}
	x := open(t, 80, 60, Options{Session: newSession(t, &script{answers: []answer{says("", call("c1", "fs__read", `{}`)), says("Done.")}}, box),
		Terminal: Terminal{Env: []string{"TERM_PROGRAM=WezTerm"}}})
	x.press("Read\r")
	x.shows("Done.", "!working")
	x.mu.Lock()
	defer x.mu.Unlock()
	written := x.raw.String()
	if named := strings.Count(written, "[Image: image/gif]"); named != 6 {
		t.Errorf("%d images are named", named)
	}
	pictures := strings.Split(written, "\x1b]1337;File=")[1:]
	if len(pictures) != maxPictures {
		t.Errorf("%d pictures", len(pictures))
	}
	for _, p := range pictures {
		_, code, _ := strings.Cut(p, ":")
		code, _, _ = strings.Cut(code, "\x07")
		data, err := base64.StdEncoding.DecodeString(code)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || c.Width != 320 || c.Height != 240 {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

// TestScaledPicture has the mean of the pixels that one pixel stands for, and a small picture as it is.
func TestScaledPicture(t *testing.T) {
	p := image.NewGray(image.Rect(5, 5, 965, 485))
	for i := range p.Pix {
		p.Pix[i] = byte(i%2) * 200 // columns of 0 and 200
	}
	got := scaled(p)
	if got.Rect != image.Rect(0, 0, 480, 240) {
		t.Fatalf("the size is %v", got.Rect)
	}
	for _, at := range []image.Point{{}, {479, 239}, {100, 7}} {
		if c := got.RGBAAt(at.X, at.Y); c != (color.RGBA{100, 100, 100, 255}) {
			t.Errorf("%v: %v", at, c)
		}
	}
	p.Rect = image.Rect(0, 0, 3, 2)
	if got := scaled(p); got.Rect != p.Rect || got.RGBAAt(1, 0) != (color.RGBA{200, 200, 200, 255}) {
		t.Errorf("a small picture became %v", got.Rect)
	}
}

// TestPicturesArePrintedAtOnce takes lines from a printer with less room than they need.
func TestPicturesArePrintedAtOnce(t *testing.T) {
	p := newPrinter()
	p.chunk.Store(4)
	p.add([]string{"a", "b", "picture\n\n", "c", "larger\n\n\n\n\n", "d"}, false)
	var got []string
	for {
		chunk, _ := p.take()
		if chunk == nil {
			break
		}
		got = append(got, strings.ReplaceAll(strings.Join(chunk, " "), "\n", "/"))
	}
	if want := "a b|picture// c|larger/////|d"; strings.Join(got, "|") != want {
		t.Errorf("%q, want %q", got, want)
	}
}
