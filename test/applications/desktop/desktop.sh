export DISPLAY=:1
Xtigervnc :1 -localhost -SecurityTypes None -geometry 800x600 -depth 24 &
until [ -S /tmp/.X11-unix/X1 ]; do sleep 0.1; done
twm &
xterm -geometry 80x24+0+0 -bg '#102030' -e sh greet.sh &
exec python3 -m websockify --web /srv 6080 localhost:5901
