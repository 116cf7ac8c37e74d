redis-server --save '' --dir /tmp --daemonize yes > /dev/null
exec node /node_modules/redis-commander/bin/redis-commander.js --nosave
