y = str(tools.music_analysis.load(file_path="/root/music/mixkit-retro-game-emergency-alarm-1000.wav"))
m = tools.music_analysis
parts = tools.gather(m.beat_track.defer(path_audio_time_series_y=y), m.mfcc.defer(path_audio_time_series_y=y),
                     m.chroma_cqt.defer(path_audio_time_series_y=y))
for name, part in zip(["beats", "mfcc", "chroma"], parts):
    print(name, str(part)[:1200])
