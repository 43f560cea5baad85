package tui

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // decodes pictures
	_ "image/jpeg" // decodes pictures
	"image/png"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A graphics is a protocol with which a terminal shows pictures.
type graphics int

const (
	noGraphics graphics = iota
	// kittyGraphics is the protocol of kitty, which Ghostty has too
	// (https://sw.kovidgoyal.net/kitty/graphics-protocol/).
	kittyGraphics
	// itermGraphics is the protocol of iTerm2, which WezTerm has too (https://iterm2.com/documentation-images.html).
	itermGraphics
)

// graphicsOf returns the protocol of the terminal that the environment names. A terminal multiplexer shows no pictures.
func graphicsOf(env []string) graphics {
	switch {
	case variable(env, "TMUX") != "" || variable(env, "STY") != "":
		return noGraphics
	case variable(env, "KITTY_WINDOW_ID") != "" || variable(env, "TERM") == "xterm-kitty" || variable(env, "TERM_PROGRAM") == "ghostty":
		return kittyGraphics
	case variable(env, "TERM_PROGRAM") == "iTerm.app" || variable(env, "TERM_PROGRAM") == "WezTerm":
		return itermGraphics
	}
	return noGraphics
}

const (
	// maxPixels is the maximum number of pixels of a picture that is shown: decoding takes memory for each.
	maxPixels = 16 << 20
	// maxPictureRows and maxPictureColumns are the maximum size of a picture in cells. cellWidth is the usual width of a
	// cell in pixels; a cell is twice as high.
	maxPictureRows    = 15
	maxPictureColumns = 60
	cellWidth         = 8
)

// picture returns the lines for a picture: its type, and the picture where the terminal can show it. The picture is one
// element with a line break for each of its rows, because it must be printed at once.
func (t *transcript) picture(p drawbridge.Image) []string {
	lines := []string{t.paint(dimStyle, cut("  [Image: "+safetext.Line(p.MIMEType)+"]", t.width))}
	if t.graphics == noGraphics || t.pictureRows < 2 {
		return lines
	}
	data, width, height, err := portable(p.Data)
	if err != nil {
		return lines
	}
	columns := max(1, min(t.width-2, maxPictureColumns, (width+cellWidth-1)/cellWidth))
	rows := max(1, columns*height/width/2)
	if limit := min(t.pictureRows, maxPictureRows); rows > limit {
		rows = limit
		columns = max(1, min(columns, rows*2*width/height))
	}
	code := base64.StdEncoding.EncodeToString(data)
	var b strings.Builder
	b.WriteString("  ")
	if t.graphics == kittyGraphics {
		writeKitty(&b, code, columns, rows)
	} else {
		fmt.Fprintf(&b, "\x1b]1337;File=inline=1;doNotMoveCursor=1;preserveAspectRatio=1;width=%d;height=%d:%s\x07", columns, rows, code)
	}
	return append(lines, b.String()+strings.Repeat("\n", rows-1))
}

// writeKitty writes a picture in pieces, as the protocol demands. The cursor stays, and the terminal does not answer.
func writeKitty(b *strings.Builder, code string, columns, rows int) {
	const piece = 4096
	for at := 0; at < len(code); at += piece {
		end, more := min(at+piece, len(code)), 0
		if end < len(code) {
			more = 1
		}
		if at == 0 {
			fmt.Fprintf(b, "\x1b_Ga=T,f=100,q=2,C=1,c=%d,r=%d,m=%d;%s\x1b\\", columns, rows, more, code[at:end])
			continue
		}
		fmt.Fprintf(b, "\x1b_Gm=%d;%s\x1b\\", more, code[at:end])
	}
}

// portable returns a picture as a PNG that this program has written, and its size in pixels. The bytes of a server do not
// reach the decoder of the terminal.
func portable(data []byte) (out []byte, width, height int, err error) {
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, 0, 0, err
	}
	if c.Width < 1 || c.Height < 1 || c.Width > maxPixels/c.Height {
		return nil, 0, 0, errors.New("the picture is too large")
	}
	decoded, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, 0, 0, err
	}
	var b bytes.Buffer
	if err := png.Encode(&b, decoded); err != nil {
		return nil, 0, 0, err
	}
	return b.Bytes(), c.Width, c.Height, nil
}
