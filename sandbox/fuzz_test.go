package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"testing"
	"time"
)

// FuzzWASI calls each function of the shim with any arguments and any memory.
func FuzzWASI(f *testing.F) {
	names := []string{"args_sizes_get", "environ_get", "clock_res_get", "clock_time_get", "random_get", "fd_write",
		"poll_oneoff", "proc_exit", "fd_read", "fd_fdstat_get", "fd_filestat_get", "fd_close", "fd_seek", "path_open",
		"sock_accept"}
	f.Add(byte(5), []byte{1, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 16, 0, 0, 0}, make([]byte, 64))
	f.Add(byte(6), []byte{0, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 60, 0, 0, 0}, make([]byte, 100))
	f.Add(byte(4), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, []byte{})
	f.Fuzz(func(t *testing.T, which byte, words, memory []byte) {
		name := names[int(which)%len(names)]
		if name == "poll_oneoff" && len(memory) > 0 {
			clear(memory[len(memory)/4:]) // no long sleeps
		}
		args := make([]uint64, 9)
		for i := range args {
			if len(words) >= 4*i+4 {
				args[i] = uint64(binary.LittleEndian.Uint32(words[4*i:]))
			}
		}
		w := &world{limits: Limits{Output: 100}, clock: &guestClock{start: time.Now()}}
		w.callWASI(name, memory, args)
		if len(w.output[0])+len(w.output[1]) > 200 {
			t.Errorf("%d bytes of output are kept", len(w.output[0])+len(w.output[1]))
		}
	})
}

// FuzzRequests answers any bytes that a script may send.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{`{"op":"call","name":"a.b","arguments":{}}`, `{"op":"gather","calls":[{"name":"a"},{}]}`,
		`{"op":"flush","ids":["1","1"]}`, `{"op":"done","outcome":[]}`, `{"op":"search","limit":-1}`, `[`, `{"op":5}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		r := &requests{host: echo, limits: Limits{Calls: 3, Transfer: 1 << 16}, pause: func() func() { return func() {} }}
		reply := r.answer(context.Background(), bytes.Clone(request))
		if !json.Valid(reply) {
			t.Errorf("%q is answered %q", request, reply)
		}
		var end Outcome
		end.fill(workerResult{}, r, Limits{Output: 10})
		if end.Error == nil && r.outcome == nil {
			t.Error("a run without an outcome has no error")
		}
	})
}

// FuzzFrames reads any bytes as a frame.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 'r', '{'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 'd'})
	f.Fuzz(func(t *testing.T, data []byte) {
		kind, payload, err := readFrame(bytes.NewReader(data))
		if err != nil {
			return
		}
		again, err := writeFrame(new(bytes.Buffer), nil, kind, payload)
		if err != nil || !bytes.Equal(again, data[:len(again)]) {
			t.Errorf("%q is written %q, %v", data, again, err)
		}
	})
}
