package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A program and its worker exchange frames over the worker's standard input and output: the length of the payload as
// four bytes, least significant first; one byte for the kind; the payload.
type frameKind byte

const (
	// The kinds that a worker receives.
	runFrame   frameKind = 'R' // a workerRun
	replyFrame frameKind = 'A' // the answer to a request
	// The kinds that a worker sends.
	readyFrame   frameKind = 'r' // no payload: it can run a script
	requestFrame frameKind = 'c' // a request of the script
	clockFrame   frameKind = 'k' // readings of the clock since the last request; empty if there were too many
	doneFrame    frameKind = 'd' // a workerResult
	errorFrame   frameKind = 'e' // the error text of a worker that cannot run scripts
)

// maxFrame is the maximum size of a payload in bytes.
const maxFrame = 64 << 20

const frameHeader = 5

// writeFrame writes one frame in one Write. It uses and returns buffer.
func writeFrame(w io.Writer, buffer []byte, kind frameKind, payload []byte) ([]byte, error) {
	if len(payload) > maxFrame {
		return buffer, fmt.Errorf("a frame of %d bytes is too large", len(payload))
	}
	buffer = binary.LittleEndian.AppendUint32(buffer[:0], uint32(len(payload)))
	buffer = append(append(buffer, byte(kind)), payload...)
	_, err := w.Write(buffer)
	if cap(buffer) > 1<<20 {
		buffer = nil
	}
	return buffer, err
}

// readFrame reads one frame. The payload is the caller's own.
func readFrame(r io.Reader) (frameKind, []byte, error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	size := binary.LittleEndian.Uint32(header[:])
	if size > maxFrame {
		return 0, nil, errors.New("the worker sent a frame that is too large")
	}
	payload := make([]byte, size)
	_, err := io.ReadFull(r, payload)
	return frameKind(header[4]), payload, err
}
